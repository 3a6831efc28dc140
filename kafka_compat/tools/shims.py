"""kafka-compat tools: list Kafka's commands, or install them under their own names."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Final

from kafka_compat.tools.registry import TOOLS

_SCRIPT: Final = """\
#!{python} -IS
import sys
sys.path[:0] = {path!r}
from kafka_compat.tools.registry import main
main({tool!r})
"""
"""Script that runs without the `site` module, whose search for packages takes longer than most commands."""


def add_parser(subparsers: Any) -> None:
    """Add the `tools` subcommand to the command line."""
    parser = subparsers.add_parser(
        "tools",
        help="list or install Kafka's commands",
        description="List Kafka's commands, or install them in a directory as kafka-topics, "
        "kafka-topics.sh and so on.",
    )
    parser.add_argument("--install", type=Path, metavar="DIR", help="directory to install the commands in")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    """List or install the commands, and return the exit code."""
    if args.install is not None:
        try:
            install(args.install)
        except OSError as error:
            print(f"kafka-compat: cannot write to {args.install}: {error.strerror}", file=sys.stderr)
            return 2
        return 0
    if args.json:
        from kafka_compat.tools import show

        show.as_json([f"kafka-{tool}" for tool in sorted(TOOLS)])
    else:
        print("\n".join(f"kafka-{tool}" for tool in sorted(TOOLS)))
    return 0


def install(folder: Path) -> None:
    """Write each command to the directory as NAME and NAME.sh, replacing existing files. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *(item for item in sys.path if item.endswith("-packages") and item != root)]
    for tool in TOOLS:
        script = _SCRIPT.format(python=sys.executable, path=path, tool=tool)
        for name in (f"kafka-{tool}", f"kafka-{tool}.sh"):
            partial = folder / f".{name}.{os.getpid()}"
            partial.write_text(script)
            partial.chmod(0o755)
            partial.replace(folder / name)
