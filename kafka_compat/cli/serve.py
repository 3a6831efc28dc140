"""kafka-compat serve: one broker in the foreground."""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_compat.config import BrokerConfig, ConfigFileError, load

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.membership.membership import Membership

AnyBroker: TypeAlias = "Broker[Membership]"

STOP_TIMEOUT_S = 4.5

log = logging.getLogger("kafka_compat")


def add_parser(subparsers: Any) -> None:
    """Add `serve` to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="run a broker in the foreground",
        description="Run a broker in the foreground until Ctrl-C or SIGTERM. Settings have Kafka's names; "
        "without any the broker listens on 127.0.0.1:9092 and keeps its data in ~/.local/share/kafka-compat.",
        epilog="exit codes: 0 after SIGINT or SIGTERM; 1 when the broker failed; 2 when it could not start",
    )
    parser.add_argument(
        "properties",
        nargs="*",
        metavar="server.properties",
        help="a file of settings; of several, the last counts most",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that counts more than the file; may be given several times",
    )
    parser.add_argument(
        "--env",
        action="store_true",
        help="take settings from the environment, over the file: KAFKA_LOG_DIRS is log.dirs (the rules of "
        "Kafka's container images, also KAFKA_CFG_… and KAFKA_CREATE_TOPICS)",
    )
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="listen on 127.0.0.1:N (0 for any free port): "
        "short for --override listeners=PLAINTEXT://127.0.0.1:N",
    )
    parser.add_argument(
        "--brokers",
        type=_count,
        default=1,
        metavar="N",
        help="run a cluster of N brokers in this process, for tests: broker ids 1 to N, each with a port "
        "(the listener's and those after it) and a data folder of its own",
    )
    parser.add_argument("--verbose", action="store_true", help="log what the broker does, not only warnings")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; expected a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of brokers; expected 1 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop. Returns the exit code."""
    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    try:
        overrides = list(args.override)
        if args.port is not None:
            # What a file advertises was for the file's port.
            overrides[:0] = [f"listeners=PLAINTEXT://127.0.0.1:{args.port}", "advertised.listeners="]
        config = load(args.properties, overrides, os.environ if args.env else None)
    except ConfigFileError as error:
        return _refuse(str(error))
    _warn(config)
    _raise_descriptor_limit()
    if args.brokers > 1:
        from kafka_compat.cli.local_cluster import serve_local_cluster

        if config.str("zookeeper.connect"):
            return _refuse("--brokers runs its brokers without ZooKeeper: take zookeeper.connect away")
        return _run(serve_local_cluster(config, args.brokers))
    return _run(_serve(config))


def _run(serving: Coroutine[Any, Any, int]) -> int:
    """On uvloop where it is installed (the extra `fast`), which takes a sixth of the CPU time of small
    requests; else on asyncio's own loop.
    """
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        log.info("Serving on the loop of %s", type(runner.get_loop()).__module__)
        return runner.run(serving)


def _raise_descriptor_limit() -> None:
    """Let the process open as many files as the system allows without asking an administrator.

    Every partition that is written or read holds a descriptor, and so does every connection; the usual soft
    limit of 1024, or 256 on macOS, is for programs that use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS may refuse the unlimited hard limit that it shows; the broker then works with what it has.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(config: BrokerConfig) -> int:
    from kafka_compat.broker import StartupError

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    with _uncollected():
        broker = _broker(config)
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = True
        stop.set()

    broker.on_fatal = fail
    starting = asyncio.ensure_future(_start(broker, config))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    try:
        # A broker that is told to stop while it starts finishes its start first: half a start is hard to
        # undo.
        await starting
    except StartupError as error:
        return _refuse(str(error))
    if not stop.is_set():
        print(ready_line(broker, config), flush=True)
        await stopping
    if not failed:
        await _hand_over(broker)
    try:
        await asyncio.wait_for(broker.stop(controlled=False), STOP_TIMEOUT_S)
    except TimeoutError:
        log.error("The broker did not stop within %s s; the next start will check its logs", STOP_TIMEOUT_S)
        return 1
    return 1 if failed else 0


async def _hand_over(broker: "AnyBroker") -> None:
    """Find successors, unless a second signal says that nobody wants to wait for them."""
    handing_over = asyncio.ensure_future(broker.hand_over())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, handing_over.cancel)
    await asyncio.wait([handing_over])
    if not handing_over.cancelled() and handing_over.exception() is not None:
        log.error("Handing over failed", exc_info=handing_over.exception())


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Import modules without the collector of garbage: what they hold stays as long as the process, and
    looking through it, now and at the end of the start, would take a tenth of the start's time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _broker(config: BrokerConfig) -> "AnyBroker":
    """A broker that is alone, or with zookeeper.connect one of a cluster."""
    hosts = config.str("zookeeper.connect")
    if not hosts:
        from kafka_compat.broker import lone_broker

        return lone_broker(config)
    from kafka_compat.broker import cluster_broker
    from kafka_compat.cluster.zookeeper_sessions import zookeeper_sessions

    return cluster_broker(config, zookeeper_sessions(config))


async def _start(broker: "AnyBroker", config: BrokerConfig) -> None:
    await broker.start()
    if config.create_topics:
        await broker.create_wanted_topics(config.create_topics)


def ready_line(broker: "AnyBroker", config: BrokerConfig) -> str:
    """What a person wants to know once the broker serves: where, and where its data are."""
    addresses = ", ".join(
        f"{name}://{f'[{host}]' if ':' in host else host}:{port}"
        for name, (host, port) in broker.addresses.items()
    )
    return f"Broker {config.broker_id} ready on {addresses}, data in {', '.join(config.log_dirs)}"


def _warn(config: BrokerConfig) -> None:
    if config.unknown:
        told = ", ".join(map(config.unknown_with_guess, config.unknown))
        log.warning("Unknown settings are ignored: %s", told)
    if config.ignored_kraft:
        log.warning("KRaft settings are ignored: %s", ", ".join(config.ignored_kraft))
    without_effect = config.without_effect
    if without_effect:
        log.warning("Settings without effect in this version: %s", ", ".join(without_effect))


def _refuse(message: str) -> int:
    print(f"kafka-compat serve: {message}", file=sys.stderr)
    return 2
