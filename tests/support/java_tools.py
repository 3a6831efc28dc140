"""Kafka's own command line tools, run one after another in one warm JVM."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.clients.programs import java_command
from tests.support import java

ANSWER_TIMEOUT_S = 180


class Printed(NamedTuple):
    """The output and exit code of a tool."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class JavaTools:
    """The tools of one version of Kafka. The first call starts the JVM. Calls block until the tool has ended,
    also those from several threads.
    """

    def __init__(self, version: str = java.DEFAULT_VERSION) -> None:
        self.version = version
        self._child: subprocess.Popen[str] | None = None
        self._one_at_a_time = threading.Lock()

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Printed:
        """Run a tool by its script name."""
        with self._one_at_a_time:
            return self._run(tool, arguments, stdin)

    def _run(self, tool: str, arguments: Sequence[str], stdin: str) -> Printed:
        if self._child is None:
            self._child = subprocess.Popen(
                java_command("Tools", self.version, ("common/Json.java", "tools")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        requests, answers = self._child.stdin, self._child.stdout
        assert requests is not None and answers is not None
        request = {"class": java.tool_class(tool, self.version), "args": list(arguments), "stdin": stdin}
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        deadline = threading.Timer(ANSWER_TIMEOUT_S, self._child.kill)
        deadline.start()
        line = answers.readline()
        deadline.cancel()
        assert line, f"{tool} {arguments} did not end within {ANSWER_TIMEOUT_S} seconds"
        answer: dict[str, Any] = json.loads(line)
        return Printed(answer["code"], answer["out"], answer["err"])

    def close(self) -> None:
        """End the JVM."""
        if self._child is None:
            return
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(10)
        self._child.stdout.close()
