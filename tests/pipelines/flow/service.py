"""Runs `kafka-compat pipeline run` as a process, and reads its lines of status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.pipelines.environment import QUICK_START
from tests.support.servers import PROJECT


class Service:
    """A running `kafka-compat pipeline run`, and its lines of status."""

    def __init__(self, *arguments: str, directory: Path) -> None:
        self._errors = (directory / "service.err").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kafka_compat", "pipeline", "run", *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **QUICK_START},
        )
        self.lines: list[dict[str, Any]] = []

    def await_state(self, name: str, state: str, restarts: int = 0, message: str = "") -> dict[str, Any]:
        """Read lines until a job has the state and the message, and return the line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            found = self.lines[-1]
            is_same = (found["name"], found["state"]) == (name, state) and found["restarts"] >= restarts
            if is_same and message in found["message"]:
                return found
        raise AssertionError(f"{name} is never {state}: {self.lines}")

    def finish(self, timeout_s: float = 60) -> tuple[int, dict[str, dict[str, Any]]]:
        """Wait for the end, and return the exit code and the last line of each job."""
        assert self.process.stdout is not None
        self.lines += [json.loads(line) for line in self.process.stdout]
        code = self.process.wait(timeout_s)
        self._errors.close()
        return code, {line["name"]: line for line in self.lines}
