"""Comparison of Kafka's commands with this project's: on the same broker, they have the same output and exit
code, except for sentences, which this project words differently (see wording.py).

A table is a text with one command line per line, in shell syntax, with the following placeholders:

{me}        is a word that differs for both, so that a command's objects belong to it alone
@           is --bootstrap-server and the address of the broker, {broker} is the address
{files}     is a directory with files of the test, the same for both
<<< TEXT    at the end of a line is its standard input, with Python's escapes.

Kafka's commands run through the whole table first, and then this project's, so a table must not change shared
objects.
"""

from __future__ import annotations

import codecs
import io
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka_compat.tools import registry
from tests.support import java
from tests.support.java_tools import JavaTools, Printed
from tests.support.servers import PROJECT
from tests.tools.neutral import differences
from tests.tools.wording import without_wording

_HERS, _MINE = NAMES = ("xhers", "xmine")
"""The values of {me}."""
_LEFT_OUT = re.compile(
    r"^\s+at |^\t\.\.\. \d+ more|WARN \[\w+Client |WARN \[(Consumer|Producer) "
    r"|These configurations .* were supplied|ERROR \[AdminClient .*\] Connection to node"
    # Messages about the tool's logging, and about the alternative format of an offsets file.
    r"|main ERROR Reconfiguration failed|^com\.fasterxml\.jackson\S+Exception: "
)
_END_THEIR_JVM = {
    "kafka-cluster",
    "kafka-features",
    "kafka-transactions",
    "kafka-producer-perf-test",
    "kafka-console-share-consumer",
}
"""Kafka's commands that exit the JVM on errors, or count records in a static field, so that each needs a new
JVM.
"""
READS = {"--describe", "--list", "--verify"}
"""Arguments of commands that change nothing."""
_TRIES = 3
SETTLE_S = 3.0
"""Maximum time for which these commands may differ, because changes reach the brokers with a delay."""
PAUSE_S = 0.2
_LISTS = (
    r"( only supports operations | takes the following options: | takes one of these options: "
    r"| takes at most one of these options: |Valid (?:states|types) are: "
    r"|requires one of the following scenarios: \[|Option combination \"\[|were not altered: )"
)
_REPLACED = (
    (r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] ", "[TIME] "),
    (r'^Exception in thread "main" ', ""),
    (r"adminclient-\d+", "adminclient-N"),
    # The number of attempts varies.
    (r"(TimeoutException: )(Timed out|Call\().*", r"\1TOO LATE"),
    (r"Epoch: \d+", "Epoch: N"),
    (r"TopicId: [\w-]{22}", "TopicId: ID"),
    (r"\b(salt|stored_key|server_key)=[\w+/]+=*", r"\1=DRAWN"),
)


class Line(NamedTuple):
    """A command line with placeholders."""

    tool: str
    arguments: tuple[str, ...]
    stdin: str = ""

    def __str__(self) -> str:
        return shlex.join([self.tool, *self.arguments])


def table(name: str) -> str:
    """Read a table from the directory `lines`."""
    return (Path(__file__).parent / "lines" / f"{name}.txt").read_text()


def lines_of(text: str) -> list[Line]:
    """Return the command lines of a table."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        before, arrow, after = line.replace(" @", " --bootstrap-server {broker}").partition(" <<< ")
        tool, *arguments = shlex.split(before)
        found.append(
            Line(tool, tuple(arguments), codecs.decode(after.strip(), "unicode_escape") if arrow else "")
        )
    return found


def _rows(lines: Iterable[str]) -> list[str]:
    """Return the lines that are not blank, sorted."""
    return sorted(filter(None, map(str.strip, lines)))


class Comparison:
    """Runs both kinds of commands on one broker. `words` maps the placeholders to their values."""

    def __init__(self, tools: JavaTools, broker: str, files: str, *, in_processes: bool = False) -> None:
        """With `in_processes`, each of this project's commands runs in a new process, as it does for users;
        otherwise in this process.
        """
        self._tools = tools
        self._words = {"broker": broker, "files": files}
        self._in_processes = in_processes
        self.count = 0

    def differences(self, text: str, replaced: Mapping[str, str | None] | None = None) -> list[str]:
        """Return the differences in outputs and exit codes. `replaced` maps regular expressions for text that
        must differ to replacements; lines that match an expression with None are omitted.

        If there are differences, the table is run again: brokers learn of changed settings with a delay, so
        either command may have seen the old state.
        """
        lines = lines_of(text)
        self.count += len(lines)
        found: list[str] = []
        for _ in range(_TRIES):
            found = self._differences(lines, replaced or {})
            if not found:
                break
        return found

    def _differences(self, lines: list[Line], replaced: Mapping[str, str | None]) -> list[str]:
        genuine = [self._hers(line) for line in lines]
        found = []
        for line, hers in zip(lines, genuine, strict=True):
            left = _neutral(hers, _HERS, replaced)
            deadline = time.monotonic() + (SETTLE_S if READS & {*line.arguments} else 0)
            while True:
                right = _neutral(self._ours(line), _MINE, replaced)
                # Rows from hash tables and lines of other threads are printed in any order. A blank line at
                # the end is no line.
                same = _rows(left) == _rows(right)
                if same or time.monotonic() > deadline:
                    break
                time.sleep(PAUSE_S)  # interval of polling
            if not same:
                found += differences(str(line), left, right)
        return found

    def _filled(self, line: Line, me: str) -> list[str]:
        filled = []
        for word in line.arguments:
            for name, value in {**self._words, "me": me}.items():
                word = word.replace(f"{{{name}}}", value)
            filled.append(word)
        return filled

    def _hers(self, line: Line) -> Printed:
        arguments = self._filled(line, _HERS)
        if line.tool not in _END_THEIR_JVM:
            return self._tools.run(line.tool, *arguments, stdin=line.stdin)
        version = self._tools.version
        done = java.run(line.tool, *arguments, version=version, stdin=line.stdin, check=False)
        return Printed(done.returncode, done.stdout, done.stderr)

    def _ours(self, line: Line) -> Printed:
        arguments = self._filled(line, _MINE)
        if self._in_processes:
            done = subprocess.run(
                [sys.executable, "-m", "kafka_compat", line.tool, *arguments],
                input=line.stdin,
                capture_output=True,
                text=True,
                timeout=120,
                cwd=PROJECT,
            )
            return Printed(done.returncode, done.stdout, done.stderr)
        with _caught(line.stdin) as (out, err):
            code = registry.run(line.tool.removeprefix("kafka-"), arguments)
        return Printed(code, out.getvalue().decode(), err.getvalue().decode())


@contextmanager
def _caught(stdin: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace the standard streams with streams in memory."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        yield out, err
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        streams = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams:
            stream.detach()


def _neutral(printed: Printed, me: str, replaced: Mapping[str, str | None]) -> list[str]:
    texts = (without_wording(text, is_genuine=me == _HERS) for text in (printed.out, printed.err))
    out, err = (neutral_lines(text, me, replaced) for text in texts)
    return [f"exit code {printed.code}", *out, "on stderr:", *err]


def neutral_lines(text: str, me: str = _MINE, replaced: Mapping[str, str | None] | None = None) -> list[str]:
    """Return the lines of an output without variable parts and stack traces."""
    found = []
    more = (replaced or {}).items()
    for line in text.replace(me, "MINE").splitlines():
        if _LEFT_OUT.search(line) or any(new is None and re.search(old, line) for old, new in more):
            continue
        for pattern, replacement in (*_REPLACED, *more):
            if replacement is not None:
                line = re.sub(pattern, replacement, line)
        found.append(_without_order(line))
    return found


def _without_order(line: str) -> str:
    """Sort lists that Java prints from sets, whose order varies between JVMs."""
    before, start, rest = re.split(_LISTS, line, maxsplit=1) if re.search(_LISTS, line) else (line, "", "")
    listed, end, after = rest.partition('"')
    return before + start + ", ".join(sorted(item.strip("[]") for item in listed.split(", "))) + end + after
