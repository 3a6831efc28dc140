"""The command line: one program, a subcommand for each thing to do, each in a module that is imported when
named."""

import importlib
import sys
from collections.abc import Sequence

from kafka_compat.cli import streams
from kafka_compat.tools import registry

#: subcommand -> module with `add_parser(subparsers)` and `run(args) -> exit code`.
COMMANDS = {
    "serve": "kafka_compat.cli.serve",
    "doctor": "kafka_compat.cli.doctor",
    "fork": "kafka_compat.cli.fork",
    "health": "kafka_compat.cli.health",
    "pipeline": "kafka_compat.cli.pipeline",
    "security": "kafka_compat.cli.security",
    "spark": "kafka_compat.cli.spark",
    "status": "kafka_compat.cli.status",
    "tools": "kafka_compat.tools.shims",
    "completion": "kafka_compat.tools.completion",
}

EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; `argv` without the program's name. Returns the exit code."""
    if argv is None:
        streams.use_utf8()
    streams.prepare()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and (tool := registry.tool_named(sys.argv[0])):
        return registry.run(tool, arguments)
    if arguments and (tool := registry.tool_of(arguments[0])):
        return registry.run(tool, arguments[1:])
    if arguments == ["--version"]:
        print(f"kafka-compat {_version()}")
        return 0
    from kafka_compat.cli.arguments import Parser, did_you_mean

    parser = Parser(
        prog="kafka-compat", description="A broker that speaks the Kafka wire protocol, and tools around it."
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    named = arguments[0] if arguments and arguments[0] in COMMANDS else None
    if arguments and named is None and not arguments[0].startswith("-"):
        guess = did_you_mean(arguments[0], [*COMMANDS, *registry.TOOLS])
        parser.error(f"there is no command {arguments[0]}{guess}; kafka-compat --help names all")
    for command in [named] if named else COMMANDS:
        importlib.import_module(COMMANDS[command]).add_parser(subparsers)
    args = parser.parse_args(arguments)
    args.line = arguments
    return int(importlib.import_module(COMMANDS[args.command]).run(args))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kafka-compat")
    except PackageNotFoundError:
        return "of a folder that is not installed"
