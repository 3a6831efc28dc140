"""kcl, kafkactl and kaf, run by tables of lines: what they show, and what they do."""

from __future__ import annotations

import functools
import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.consoles.sides import Side, Sides
from tests.support.programs import program

TOOLS = ("kaf", "kafkactl", "kcl")
_LINES = Path(__file__).parent / "lines"
_TIMEOUT_S = 30
_MEANT = (
    # Settings of our own, what a broker alone has in the place of ZooKeeper, and where data lie by default.
    r"\bkafka\.compat\.|\bzookeeper\.(connect|session\.timeout\.ms)\b|\blog\.dir\b",
    # It shows the message as well, which Kafka 4 gives, too.
    r"^nosuch UNKNOWN_TOPIC_OR_PARTITION: ",
)


def terminal_differences(sides: Sides, folder: Path, tool: str, *, actions: bool = True) -> list[str]:
    """Line by line of the tool's table; those with an exclamation mark before them do something: they are run
    once, and where no `actions` are wanted the table ends before the first of them.
    """
    commands = sides.both(lambda side: _command(tool, side, folder))
    found = []
    for line in (_LINES / f"{tool}.txt").read_text().splitlines():
        acts, words = line.startswith("!"), line.removeprefix("!")
        if acts and not actions:
            break
        show = functools.partial(_shown, commands, words)
        found += sides.differences(f"{tool} {words}", show, _MEANT, once=acts)
    return found


def _command(tool: str, side: Side, folder: Path) -> Sequence[str]:
    """The program, with the way to the brokers."""
    found = program(tool)
    if tool == "kcl":
        return [found, "--no-config-file", "-B", side.address]
    file = folder / f"{tool}-{side.name}.yml"
    if tool == "kafkactl":
        brokers = json.dumps(side.address.split(","))
        file.write_text(f"contexts:\n  default:\n    brokers: {brokers}\ncurrent-context: default\n")
        return [found, "-C", str(file)]
    file.write_text("clusters: []\n")
    return [found, "--config", str(file), "-b", side.address]


def _shown(commands: Mapping[str, Sequence[str]], line: str, side: Side) -> str:
    """What `line` prints; behind <<< in it is what it gets on stdin."""
    given, _, stdin = line.partition(" <<< ")
    words = [*commands[side.name], *shlex.split(given)]
    try:
        run = subprocess.run(words, input=f"{stdin}\n", capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "does not end"
    if run.returncode == 0 and not run.stderr:
        return run.stdout if run.stdout.strip() else "nothing"
    return f"exit code {run.returncode}\n{run.stdout}\non stderr:\n{run.stderr}"
