"""The command-line tools kcl, kafkactl and kaf, run with tables of commands, compared with Apache Kafka."""

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
    # Our own settings, settings with different names without ZooKeeper, and the default data directory
    # differ.
    r"\bkafka\.compat\.|\bzookeeper\.(connect|session\.timeout\.ms)\b|\blog\.dir\b",
    # Our response contains an error message, like Kafka 4, and the tool prints it.
    r"^nosuch UNKNOWN_TOPIC_OR_PARTITION: ",
)


def terminal_differences(sides: Sides, folder: Path, tool: str, *, actions: bool = True) -> list[str]:
    """Run each line of the tool's table, and return the differences. Lines that start with an exclamation
    mark have side effects and run once. Without `actions`, the run stops before the first of them.
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
    """Return the command line of the tool for one side."""
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
    """Return the output of `line`. Text after <<< is its stdin."""
    given, _, stdin = line.partition(" <<< ")
    words = [*commands[side.name], *shlex.split(given)]
    try:
        run = subprocess.run(words, input=f"{stdin}\n", capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "does not end"
    if run.returncode == 0 and not run.stderr:
        return run.stdout if run.stdout.strip() else "nothing"
    return f"exit code {run.returncode}\n{run.stdout}\non stderr:\n{run.stderr}"
