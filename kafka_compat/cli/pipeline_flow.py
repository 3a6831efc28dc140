"""kafka-compat pipeline run FLOW.yaml: run several jobs as one service."""

import argparse
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kafka_compat.cli.arguments import did_you_mean
from kafka_compat.cli.pipeline_errors import print_error

_EPILOG = """\
exit codes: 0 all jobs ended well, or were stopped (--continuous); 1 a job failed and was not restarted;
2 nothing was started: the file has errors; 130 a signal stopped a flow without --continuous"""


def add_run(names: Any) -> None:
    """Add `run` to the subcommands of `kafka-compat pipeline`."""
    parser = names.add_parser(
        "run",
        help="run the jobs of a file as one service",
        description="""\
Check the file, and run its jobs: one after another, or with --continuous all at the same time, until SIGINT
or SIGTERM. A continuous job that fails is restarted, at first after a second, later after at most a minute.
Prints a line when the state of a job changes, and a line for each job every --status-s seconds.""",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FLOW.yaml", help="the jobs and their settings")
    parser.add_argument("--continuous", action="store_true", help="run the jobs until SIGINT or SIGTERM")
    parser.add_argument("--check", action="store_true", help="only check the file")
    help = "seconds between lines of status (default: 60)"
    parser.add_argument("--status-s", type=_seconds, default=60.0, metavar="S", help=help)
    help = "seconds after SIGTERM before jobs are killed (default: 60)"
    parser.add_argument("--stop-timeout-s", type=_seconds, default=60.0, metavar="S", help=help)
    parser.add_argument("--json", action="store_true", help="print each line of status as JSON")
    parser.add_argument("--verbose", action="store_true", help="print the messages of all jobs")


def run_flow(args: argparse.Namespace, jobs: Mapping[str, Callable[[argparse.ArgumentParser], None]]) -> int:
    """Run the flow, and return its exit code. `jobs` contains the function that adds each job's arguments."""
    import asyncio

    from kafka_compat.pipelines.errors import NotStarted
    from kafka_compat.pipelines.flow.flow_file import read_flow
    from kafka_compat.pipelines.flow.service import FlowService

    kinds = {name: _kind(name, add_arguments) for name, add_arguments in jobs.items()}
    try:
        flow = read_flow(args.file, kinds, continuous=args.continuous, guess=did_you_mean)
    except NotStarted as error:
        return print_error(error)
    if args.check:
        print(f"{args.file}: {len(flow)} job{'s' if len(flow) > 1 else ''}, no errors")
        return 0
    service = FlowService(
        flow,
        args.file.resolve().parent,
        continuous=args.continuous,
        as_json=args.json,
        verbose=args.verbose,
        status_s=args.status_s,
        stop_timeout_s=args.stop_timeout_s,
    )
    return asyncio.run(service.run())


def stop_at_eof() -> None:
    """Send SIGTERM to this process when its standard input ends, because its parent has then died."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


class _Checking(argparse.ArgumentParser):
    """A parser that raises ValueError instead of printing the error."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _kind(name: str, add_arguments: Callable[[argparse.ArgumentParser], None]) -> Any:
    from kafka_compat.pipelines.flow.flow_file import JobKind, Setting

    parser = _Checking(prog=f"kafka-compat pipeline {name}", add_help=False, allow_abbrev=False)
    add_arguments(parser)
    settings = {}
    for action in parser._actions:
        for flag in action.option_strings:
            setting = flag.removeprefix("--")
            repeats = isinstance(action, argparse._AppendAction)
            settings[setting] = Setting(setting, action.nargs != 0, repeats, _check_of(action))

    def check(arguments: Sequence[str]) -> str | None:
        try:
            parser.parse_args([*arguments])
        except ValueError as error:
            return str(error).replace("--", "")
        return None

    return JobKind(settings, check)


def _check_of(action: argparse.Action) -> Callable[[str], str | None]:
    def check(text: str) -> str | None:
        convert = action.type if callable(action.type) else str
        try:
            value = convert(text)
        except argparse.ArgumentTypeError as error:
            return str(error)
        except (TypeError, ValueError):
            return f"{text} is not {_KINDS.get(convert, 'valid')}"
        if action.choices is not None and value not in action.choices:
            choices = [str(each) for each in action.choices]
            return f"{text} is not valid{did_you_mean(text, choices)}; expected {', '.join(choices)}"
        return None

    return check


_KINDS: dict[Any, str] = {int: "a whole number", float: "a number"}


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value
