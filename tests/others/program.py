"""A program of another project, whose output is awaited."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.process import Process, wait_until

WAIT_S = 480.0
"""How long an expected event may take, on a busy machine and with sessions that expire."""


class Program:
    """A running program whose output is appended to a log file."""

    def __init__(
        self, log: Path, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = Process(command, log, "$^", environment=environment)
        self._log = log
        self._seen = len(self._output())
        self._process.launch()

    @property
    def running(self) -> bool:
        return self._process.running

    def await_output(self, *patterns: str, timeout_s: float = WAIT_S) -> None:
        """Wait for each of the regular expressions in the output after the last one awaited. Raises
        AssertionError, also if the program ends before.
        """
        for pattern in patterns:

            def is_there(pattern: str = pattern) -> bool:
                running = self._process.running
                if not running:
                    self._process.stop()  # then all output is in the log
                found = re.compile(pattern).search(self._output(), self._seen)
                if found is not None:
                    self._seen = found.end()
                assert found is not None or running, f"ended before {pattern}:\n{self._process.tail()}"
                return found is not None

            wait_until(is_there, timeout_s, f"{pattern} in {self._log}", 0.2)

    def skip_output(self) -> None:
        """Do not find earlier output in the next call of `await_output`."""
        self._seen = len(self._output())

    def end(self, timeout_s: float = WAIT_S) -> str:
        """Wait until the program ends by itself. Return its output."""
        self._process.child.wait(timeout_s)
        self._process.stop()
        return self._output()

    def stop(self) -> None:
        """Stop the program with SIGTERM."""
        self._process.stop(60)

    def kill(self) -> None:
        """Kill the program with kill -9."""
        self._process.kill()

    def _output(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""
