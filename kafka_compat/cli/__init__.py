"""The `kafka-compat` command line: one module for each subcommand, imported only when it is used."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.cli.uncollected import uncollected
from kafka_compat.tools import registry

if TYPE_CHECKING:
    from argparse import Namespace

#: Maps each subcommand to its module, which defines `add_parser(subparsers)` and `run(args) -> exit code`.
COMMANDS = {
    "serve": "kafka_compat.cli.serve",
    "doctor": "kafka_compat.cli.doctor",
    "fork": "kafka_compat.cli.fork",
    "health": "kafka_compat.cli.health",
    "migrate": "kafka_compat.cli.migrate",
    "pipeline": "kafka_compat.cli.pipeline",
    "security": "kafka_compat.cli.security",
    "spark": "kafka_compat.cli.spark",
    "status": "kafka_compat.cli.status",
    "tools": "kafka_compat.tools.shims",
    "completion": "kafka_compat.tools.completion",
}

EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code. `argv` does not contain the program's name."""
    if argv is None:
        use_utf8()
    prepare()
    arguments = list(sys.argv[1:] if argv is None else argv)
    tool = registry.tool_named(sys.argv[0]) if argv is None else None
    if argv is not None or (tool is None and arguments[:1] == ["serve"]):
        return _run(arguments, is_program=argv is None)  # A broker keeps running if its output fails.
    from kafka_compat.tools.output import guarded

    if tool is not None:
        return guarded(lambda: registry.run(tool, arguments))
    return guarded(lambda: _run(arguments, is_program=True))


def _run(arguments: list[str], *, is_program: bool) -> int:
    if arguments and (tool := registry.tool_of(arguments[0])):
        return registry.run(tool, arguments[1:])
    if arguments == ["--version"]:
        print(f"kafka-compat {_version()}")
        return 0
    with uncollected():
        args = _parse(arguments)
    code = int(importlib.import_module(COMMANDS[args.command]).run(args))
    if is_program and args.command == "serve":
        registry.leave(code)  # Other commands have exit handlers.
    return code


def _parse(arguments: list[str]) -> Namespace:
    if arguments and arguments[0] == "serve":
        from kafka_compat.cli import serve

        simple: Namespace | None = serve.parse_simple(arguments[1:])
        if simple is not None:
            return simple
    from kafka_compat.cli.arguments import Parser, did_you_mean

    parser = Parser(
        prog="kafka-compat",
        description="A broker that speaks the Kafka protocol, and tools for Kafka clusters.",
        epilog="Kafka's commands, such as `kafka-compat topics` for kafka-topics.sh: "
        f"{', '.join(registry.TOOLS)}. Each has its own --help.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    named = arguments[0] if arguments and arguments[0] in COMMANDS else None
    if arguments and named is None and not arguments[0].startswith("-"):
        guess = did_you_mean(arguments[0], [*COMMANDS, *registry.TOOLS])
        parser.error(f"unknown command {arguments[0]}{guess}; kafka-compat --help lists all commands")
    for command in [named] if named else COMMANDS:
        importlib.import_module(COMMANDS[command]).add_parser(subparsers)
    args = parser.parse_args(arguments)
    args.line = arguments
    return args


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kafka-compat")
    except PackageNotFoundError:
        return "(not installed)"


_UTF8 = "PYTHONUTF8"


def prepare() -> None:
    """Redirect closed standard streams (`>&-`) to /dev/null. Otherwise, a file opened later could get the
    stream's descriptor and receive the printed text. Also escape characters that a stream cannot encode.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                # The file gets descriptor `number`, because all lower descriptors are open.
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # Keep Python's error handler for the C locale, because it writes the bytes of file names unchanged.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def use_utf8() -> None:
    """Restart the program with UTF-8 file names if Python would use ASCII. LC_ALL=C causes this if Python's
    locale coercion is off (PYTHONUTF8=0, PYTHONCOERCECLOCALE=0).
    """
    is_ascii = sys.getfilesystemencoding() in ("ascii", "us-ascii")
    if is_ascii and os.environ.get(_UTF8) != "1" and not sys.flags.ignore_environment:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, _UTF8: "1"})
