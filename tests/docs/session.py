"""Run the terminal sessions in a page: each command must print the documented output.

In a `console` block, a line that starts with `$ ` is a command, which continues on the next line if it ends
with a backslash. The following lines are its expected output: `…` matches any text, a line with only `…`
matches any number of lines, and two or more spaces match the padding of any column width. Once a server has
printed its expected output, it keeps running during the following commands until `$ ^C` or the end of the
page.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.docs.markdown import blocks
from tests.support.process import wait_until
from tests.support.servers import PROJECT

KAFKA = "kafka/bin/kafka-server-start.sh"
SERVERS = {"kafka-compat serve": 0, KAFKA: 130}
"""Prefixes of commands that run a server until Ctrl-C, and their exit codes after it."""
READY = "ready"
"""The ready message of a broker. Output without it means that startup failed."""
COMES_TRUE = ("get-offsets", "--under-replicated-partitions", "curl")
"""Commands that are retried, because Apache Kafka learns of its topics only after startup, and replicas need
time to catch up."""
COMES_TRUE_OF_KAFKA = ("--create",)
"""Commands that are also retried with Apache Kafka, which reports that it has started before it knows of any
broker."""
PATIENCE_S = 60


class Step(NamedTuple):
    """A command and its expected output. The command `^C` stops the server."""

    command: str
    printed: str


def steps(page: str) -> Iterator[Step]:
    """Yield the steps of all blocks, in order."""
    for block in blocks(page):
        if block.language != "console":
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            command = [lines.pop(0)]
            while command[-1].endswith("\\"):
                command.append(lines.pop(0))
            yield Step("\n".join(command), "\n".join(lines))


def matches(expected: str, printed: str) -> bool:
    """Return whether the output matches the expected text, in which `…` is a wildcard, and the number of
    spaces between columns is not significant.
    """

    def escaped(line: str) -> str:
        return re.sub(r"(\\ ){2,}", "[ ]+", re.escape(line)).replace("…", ".*")

    pattern = "".join(
        r"(.*\n)*" if line.strip() == "…" else escaped(line) + r"[ ]*\n" for line in expected.splitlines()
    )
    told = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, told) is not None


class Session:
    """A terminal in a new directory. `instead` maps texts of the page to their replacements. A broker without
    a properties file listens on `port`.
    """

    def __init__(self, folder: Path, instead: Mapping[str, str], port: int) -> None:
        self._folder = folder
        self._instead = instead
        self._port = port
        self._server: subprocess.Popen[bytes] | None = None
        self._serves = ""
        """The prefix of the last server's command."""
        self._numbers = 0
        tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        own = {"HOME": str(folder), "XDG_DATA_HOME": "", "PATH": tools, "PYTHONPATH": str(PROJECT)}
        self._environment = {**os.environ, **own, "COLUMNS": "160", "NO_COLOR": "1"}

    def run(self, page: str) -> int:
        """Run all steps of the page, and return their number. Raises AssertionError at the first step with
        different output.
        """
        all_steps = list(steps(page))
        try:
            for step in all_steps:
                if step.command == "^C":
                    self.interrupt()
                elif step.command.startswith((*SERVERS,)):
                    self._serve(step)
                else:
                    self._do(step)
            if self._server is not None:
                self.interrupt()
        finally:
            if self._server is not None:
                self._server.kill()
                self._server.wait()
        return len(all_steps)

    def interrupt(self) -> None:
        """Send Ctrl-C to the server, and check its exit code."""
        assert self._server is not None, "no server is running"
        self._server.send_signal(signal.SIGINT)
        assert self._server.wait(60) == SERVERS[self._serves]
        self._server = None

    def replaced(self, text: str) -> str:
        for old, new in self._instead.items():
            text = text.replace(old, new)
        return text

    def _do(self, step: Step) -> None:
        command, expected = self.replaced(step.command), self.replaced(step.printed)
        printed = ""

        def as_said() -> bool:
            nonlocal printed
            printed = self._printed(command)
            return matches(expected, printed)

        is_kafka = self._server is not None and self._serves == KAFKA
        late = (*COMES_TRUE, *(COMES_TRUE_OF_KAFKA if is_kafka else ()))
        patience_s = PATIENCE_S / 2 if any(part in command for part in late) else 0
        try:
            wait_until(as_said, patience_s, "the documented output", 0.2)
        except AssertionError as error:
            raise AssertionError(f"$ {command}\n{printed}\ninstead of\n{expected}") from error

    def _printed(self, command: str) -> str:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        ).stdout

    def _serve(self, step: Step) -> None:
        assert self._server is None, "a server is already running"
        self._numbers += 1
        (self._serves,) = (name for name in SERVERS if step.command.startswith(name))
        log = self._folder / f"server-{self._numbers}.log"
        command = self.replaced(step.command)
        if ".properties" not in command:
            command = command.replace("kafka-compat serve", f"kafka-compat serve --port {self._port}")
        with open(log, "wb") as output:
            self._server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Processes in the background, such as test runs, ignore SIGINT, and Java would inherit this.
                preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            )
        expected = self.replaced(step.printed)
        server = self._server

        def ready() -> bool:
            ended = server.poll() is not None
            said = matches(expected, log.read_text())
            assert said or not ended, log.read_text()
            return said

        try:
            wait_until(ready, PATIENCE_S, "the documented output", 0.05)
        except AssertionError as error:
            raise AssertionError(f"{log.read_text()}\ninstead of\n{expected}") from error
        if step.command.startswith("kafka-compat") and READY not in expected:
            assert server.wait(30) == 2
            self._server = None
