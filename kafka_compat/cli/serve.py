"""kafka-compat serve: run brokers in the foreground."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
from collections.abc import Sequence
from itertools import takewhile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.cli import log_output
from kafka_compat.cli.log_output import refuse
from kafka_compat.cli.uncollected import uncollected
from kafka_compat.config import BrokerConfig, ConfigFileError, load

if TYPE_CHECKING:
    import argparse
    import threading

    from kafka_compat.cli.ephemeral import EphemeralFolder

log = logging.getLogger("kafka_compat")


_OPTIONS: Final = {
    "--env": "also read settings from the environment variables of Kafka's container images, such as "
    "KAFKA_LOG_DIRS or KAFKA_CFG_LOG_DIRS for log.dirs, and KAFKA_CREATE_TOPICS; they override the files",
    "--port": "listen on 127.0.0.1:N (0 for any free port): "
    "short for --override listeners=PLAINTEXT://127.0.0.1:N",
    "--brokers": "run a cluster of N brokers in this process, for tests. Broker IDs are 1 to N; ports are "
    "consecutive, starting at the listener's port; each broker has its own data directory",
    "--processes": "run a cluster of N brokers, each in its own process, and restart processes that "
    "terminate. Broker IDs start at broker.id; ports and data directories are assigned as for --brokers. If "
    "kafka.compat.http.listener is set, HTTP ports are consecutive, starting at the port of that listener",
    "--ephemeral": "store data in a new temporary directory, and delete it when the broker stops",
    "--stop-at-eof": "exit immediately at the end of standard input, that is, when the parent program exits "
    "or is killed; --ephemeral data is deleted, and other data is kept",
    "--json": "print one line of JSON with the address when the broker is ready",
    "--kafka-lines": "once the broker is ready, print the Kafka startup messages that container tools "
    "wait for",
    "--verbose": "also log INFO events: short for --override kafka.compat.log.level=INFO",
}
"""Maps each option to its help. Options that are not in _NUMBERS are flags."""
_NUMBERS: Final = {"--port": "port", "--brokers": "count", "--processes": "count"}
"""Maps each option with a number to the function in `arguments` that parses the number."""


def add_parser(subparsers: Any) -> None:
    """Add the `serve` subcommand to the command line."""
    from kafka_compat.cli import arguments

    parser = subparsers.add_parser(
        "serve",
        help="run a broker in the foreground",
        description="Run a broker in the foreground until Ctrl-C or SIGTERM. Settings have Kafka's names. "
        "By default, the broker listens on 127.0.0.1:9092 and stores data in ~/.local/share/kafka-compat.",
        epilog="exit codes: 0 after SIGINT or SIGTERM; 1 if the broker failed; 2 if it could not start",
    )
    help = "settings file; later files override earlier files"
    parser.add_argument("properties", nargs="*", metavar="server.properties", help=help)
    arguments.add_override(parser)
    for option, text in _OPTIONS.items():
        if option in _NUMBERS:
            parse = getattr(arguments, _NUMBERS[option])
            parser.add_argument(option, type=parse, metavar="N", help=text)
        else:
            parser.add_argument(option, action="store_true", help=text)


def parse_simple(words: Sequence[str]) -> Any:
    """Parse the words after `serve` if they are settings files, followed by overrides, flags and a port.
    Return None for all other command lines, including invalid ones, which argparse parses. Importing and
    preparing argparse would take 3% of the startup time.
    """
    given: dict[str, Any] = {option: None if option in _NUMBERS else False for option in _OPTIONS}
    files, overrides = list(takewhile(lambda word: not word.startswith("-"), words)), []
    rest = iter(words[len(files) :])
    for word in rest:
        option, has_value, value = word.partition("=")
        if option not in ("--override", "--port"):
            if word not in _OPTIONS or word in _NUMBERS:
                return None
            given[word] = True
            continue
        value = value if has_value else next(rest, "")
        if option == "--port" and value.isdecimal() and int(value) < 65536:
            given[option] = int(value)
        elif option == "--override" and value and not value.startswith("-"):
            overrides.append(value)
        else:
            return None
    attributes = {option[2:].replace("-", "_"): value for option, value in given.items()}
    return SimpleNamespace(command="serve", properties=files, override=overrides, **attributes)


def run(args: argparse.Namespace) -> int:
    """Run the brokers until they are stopped, and return the exit code."""
    log_output.begin(verbose=args.verbose)
    try:
        overrides = list(args.override)
        environment = os.environ if args.env else None
        config = load(args.properties, overrides, environment, args.port)
        log_output.obey(config, verbose=args.verbose)
        contradiction = _contradiction(args, config)
        if contradiction is not None:
            return refuse(contradiction, config)
        folder = _ephemeral_folder(config) if args.ephemeral else None
        if folder is not None and folder.path != _given_log_dirs(config):
            config = load(args.properties, [*overrides, f"log.dirs={folder.path}"], environment, args.port)
    except (ConfigFileError, OSError) as error:
        return refuse(str(error))
    exiting: threading.Lock | None = None
    if args.stop_at_eof:
        from kafka_compat.cli import ephemeral

        exiting = ephemeral.end_with_input(folder)
    keeps_data = folder is None or args.stop_at_eof
    try:
        return _serve_all(args, config, keeps_data=keeps_data)
    finally:
        if exiting is not None:
            exiting.acquire()
        elif folder is not None:
            folder.remove()


def _serve_all(args: argparse.Namespace, config: BrokerConfig, *, keeps_data: bool) -> int:
    _warn(config)
    _raise_descriptor_limit()
    if args.processes is not None:
        from kafka_compat.cli.processes import serve_processes

        return asyncio.run(
            serve_processes(config, args.processes, verbose=args.verbose, kafka_lines=args.kafka_lines)
        )
    from kafka_compat.cli.foreground import run_loop

    if args.brokers is not None and args.brokers > 1:
        from kafka_compat.cli.local_cluster import serve_local_cluster

        serving = serve_local_cluster(
            config,
            args.brokers,
            as_json=args.json,
            kafka_lines=args.kafka_lines,
            syncs=not args.ephemeral,
        )
        return run_loop(serving)
    return run_loop(_serve(args, config, keeps_data=keeps_data))


def _given_log_dirs(config: BrokerConfig) -> str | None:
    return config.static.get("log.dirs", config.static.get("log.dir"))


def _ephemeral_folder(config: BrokerConfig) -> EphemeralFolder:
    from kafka_compat.cli import ephemeral

    given = _given_log_dirs(config)
    if given is None:
        ephemeral.remove_left_over()
    return ephemeral.EphemeralFolder(given)


def _contradiction(args: argparse.Namespace, config: BrokerConfig) -> str | None:
    zookeeper = config.str("zookeeper.connect")
    if args.brokers is not None and args.processes is not None:
        return (
            f"--brokers {args.brokers} and --processes {args.processes} cannot be combined: --brokers runs "
            "its brokers in one process, --processes runs each in its own"
        )
    if args.brokers is not None and args.brokers > 1 and zookeeper:
        return "--brokers runs its brokers without ZooKeeper: remove zookeeper.connect, or use --processes"
    if args.processes is not None and zookeeper and not config.has_broker_id:
        return (
            f"--processes {args.processes} with zookeeper.connect={zookeeper} needs broker.id, the first of "
            "the brokers' IDs: for example --override broker.id=1"
        )
    if args.json and args.processes is not None:
        return "--json works with the brokers of one process only: use --brokers instead of --processes"
    if args.processes is not None and config.bool("kafka.compat.control.enable"):
        return (
            "kafka.compat.control.enable=true works with the brokers of one process only: use --brokers "
            "instead of --processes"
        )
    log_dirs = _given_log_dirs(config)
    if args.ephemeral and log_dirs is not None:
        from kafka_compat.cli.ephemeral import PREFIX, EphemeralFolder

        if EphemeralFolder.is_ours(log_dirs):
            return None
        return (
            f"--ephemeral deletes its data, but log.dirs={log_dirs} is not an ephemeral directory: remove "
            f"one of the two (names of ephemeral directories begin with {PREFIX})"
        )
    return None


def _raise_descriptor_limit() -> None:
    """Raise the soft limit on open files to the hard limit.

    Each partition in use and each connection holds a descriptor. The usual soft limit of 1024 (macOS: 256) is
    intended for programs that use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Keep the soft limit if macOS rejects the unlimited hard limit that it reports.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(args: argparse.Namespace, config: BrokerConfig, *, keeps_data: bool) -> int:
    from kafka_compat.cli import foreground
    from kafka_compat.cli.http_services import http_services
    from kafka_compat.errors import StartupError

    stop = foreground.Stop()
    stop.on_signals()
    http = None
    try:
        http = http_services(config)
        if config.quorum is not None and not config.quorum.is_broker:
            from kafka_compat.cli.controller import serve_controller

            return await serve_controller(args, config, stop, http)
        with uncollected():
            broker = foreground.new_broker(config, http, syncs=not args.ephemeral)
        broker.keeps_data = keeps_data

        def ready() -> None:
            foreground.tell_ready([broker], http.url if http else None, as_json=args.json)
            if http is not None:
                http.serve([broker])
            if args.kafka_lines:
                log_output.tell_started(broker.broker_id)

        return await foreground.serve(broker, stop, ready)
    except StartupError as error:
        return refuse(str(error), config)
    finally:
        if http is not None:
            await http.close()


def _warn(config: BrokerConfig) -> None:
    if config.ambiguous:
        log.warning(
            "Decoded non-ASCII settings as ISO-8859-1, as Kafka does, although they appear to be UTF-8: %s. "
            "Write non-ASCII characters as \\u followed by four hexadecimal digits",
            ", ".join(config.ambiguous),
        )
    if config.unknown:
        names = ", ".join(map(config.unknown_with_guess, config.unknown))
        log.warning("Ignored unknown settings: %s", names)
    if config.ignored_kraft:
        has_zookeeper = bool(config.str("zookeeper.connect"))
        log.warning(
            "Ignored settings of a quorum, because %s: %s. %s",
            "zookeeper.connect is set" if has_zookeeper else "process.roles is not set",
            ", ".join(config.ignored_kraft),
            "Remove zookeeper.connect for a cluster without ZooKeeper, and otherwise these settings"
            if has_zookeeper
            else "Remove them, or set process.roles",
        )
    without_effect = config.without_effect
    if without_effect:
        log.warning("Ignored settings that have no effect in this version: %s", ", ".join(without_effect))
