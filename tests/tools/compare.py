"""The same command lines, run by Kafka's own commands and by ours, on one broker: output and exit code
are equal, except for sentences, which are our own (see wording.py).

A table is a text with one command line per line, as a shell would take it. In it
  {me}        is a word of its own for each: what a command makes belongs to it alone
  @           is --bootstrap-server and the address of the broker, {broker} is the address
  {files}     is a folder, the same for both, with the files that the test put there
  <<< TEXT    at the end of a line is what it gets on stdin, with the escapes of Python.
Kafka's commands go through the whole table first, then ours, so a table leaves what both share as it was.
"""

from __future__ import annotations

import codecs
import io
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
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
"""What {me} is."""
_LEFT_OUT = re.compile(
    r"^\s+at |^\t\.\.\. \d+ more|WARN \[\w+Client |WARN \[(Consumer|Producer) "
    r"|These configurations .* were supplied|ERROR \[AdminClient .*\] Connection to node"
    # What it says of its own logging, and of the other form that a file of offsets may have.
    r"|main ERROR Reconfiguration failed|^com\.fasterxml\.jackson\S+Exception: "
)
_END_THEIR_JVM = {"kafka-features", "kafka-transactions", "kafka-producer-perf-test"}
"""Commands that end the process themselves when something is wrong: each needs a JVM of its own."""
READS = {"--describe", "--list", "--verify"}
"""Words of commands that change nothing."""
_TRIES = 3
SETTLE_S = 3.0
"""For how long such a command may print something else: what was changed is not told everywhere at once."""
PAUSE_S = 0.2
_LISTS = (
    r"( only supports operations | takes the following options: | takes one of these options: "
    r"| takes at most one of these options: |Valid (?:states|types) are: "
    r"|requires one of the following scenarios: \[|Option combination \"\[)"
)
_REPLACED = (
    (r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] ", "[TIME] "),
    (r'^Exception in thread "main" ', ""),
    (r"adminclient-\d+", "adminclient-N"),
    # How often it was tried is a matter of luck.
    (r"(TimeoutException: )(Timed out|Call\().*", r"\1TOO LATE"),
    (r"Epoch: \d+", "Epoch: N"),
    (r"TopicId: [\w-]{22}", "TopicId: ID"),
    (r"\b(salt|stored_key|server_key)=[\w+/]+=*", r"\1=DRAWN"),
)


class Line(NamedTuple):
    """One command line, with the placeholders in it."""

    tool: str
    arguments: tuple[str, ...]
    stdin: str = ""

    def __str__(self) -> str:
        return shlex.join([self.tool, *self.arguments])


def table(name: str) -> str:
    """The table of that name in the folder `lines`."""
    return (Path(__file__).parent / "lines" / f"{name}.txt").read_text()


def lines_of(text: str) -> list[Line]:
    """The command lines of a table."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        before, arrow, after = line.replace(" @", " --bootstrap-server {broker}").partition(" <<< ")
        tool, *arguments = shlex.split(before)
        found.append(
            Line(tool, tuple(arguments), codecs.decode(after.strip(), "unicode_escape") if arrow else "")
        )
    return found


class Comparison:
    """Both kinds of commands, on one broker. `words` are the placeholders and what they stand for."""

    def __init__(self, tools: JavaTools, broker: str, files: str, *, in_processes: bool = False) -> None:
        """`in_processes` runs each of our commands as a process of its own, as users do, not in this one."""
        self._tools = tools
        self._words = {"broker": broker, "files": files}
        self._in_processes = in_processes
        self.count = 0

    def differences(self, text: str, replaced: Mapping[str, str | None] | None = None) -> list[str]:
        """Where both do not print or end the same; [] when nowhere. `replaced` are expressions, and what
        stands for what they match, for that which must differ in these lines; lines with a match of one that
        has None are left out.

        What differs is tried again from the start: brokers learn of changed settings a little later, and a
        command that asks before that has another answer, whichever of the two it is.
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
                # Rows of hash tables come in any order.
                same = sorted(map(str.strip, left)) == sorted(map(str.strip, right))
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
    """Standard streams in memory."""
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
    """The lines of an output, without what differs each time, and without the places of stack traces."""
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
    """Some lists are of Java's sets, which have another order in each of its processes."""
    before, start, rest = re.split(_LISTS, line, maxsplit=1) if re.search(_LISTS, line) else (line, "", "")
    listed, end, after = rest.partition('"')
    return before + start + ", ".join(sorted(item.strip("[]") for item in listed.split(", "))) + end + after
