"""Run a broker in the foreground until the process receives a signal to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.cli.http_services import HttpServices, hooks_of
from kafka_compat.cli.log_output import tell, write
from kafka_compat.cli.stop_signals import stop_signals
from kafka_compat.cli.uncollected import uncollected
from kafka_compat.errors import StoppedWaiting

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.config import BrokerConfig

STOP_TIMEOUT_S = 4.5
_KEEP_MODULES_AFTER_S = 2.0
"""Time between the start of a broker and the copy of its modules, which takes as much CPU time as a third of
the startup. A broker for a short test stops before, and the first requests of any broker do not wait.
"""

log = logging.getLogger("kafka_compat")


class Stop:
    """A request to stop the broker. A second signal also ends the wait for new leaders."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.requested_again = asyncio.Event()
        self._signalled = False

    def request(self) -> None:
        """Request a stop because of a signal. A second signal ends the wait for new leaders. Requests from
        other sources do not count as signals, because the same signal may have caused them.
        """
        (self.requested_again if self._signalled else self.requested).set()
        self._signalled = True

    def on_signals(self) -> None:
        """Request a stop on the signals that end a broker."""
        for number in stop_signals():
            asyncio.get_running_loop().add_signal_handler(number, self.request)


async def serve(broker: Broker, stop: Stop, on_ready: Callable[[], None], *, hands_over: bool = True) -> int:
    """Start the broker, create the topics in the settings, and serve until a stop is requested. Return the
    exit code. With `hands_over`, leadership moves to other brokers, if any, before shutdown. Raises
    StartupError if the broker cannot start.
    """
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = True
        stop.requested.set()

    broker.on_fatal = fail
    starting = asyncio.ensure_future(_start(broker))
    stopping = asyncio.ensure_future(stop.requested.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if stop.requested.is_set():
        broker.stop_waiting()
    # Even if a stop is requested, wait for startup to finish, because a partial startup is hard to undo.
    try:
        await starting
    except StoppedWaiting:
        return 1 if failed else 0
    if not stop.requested.is_set():
        on_ready()
        keeping = asyncio.ensure_future(keep_modules())
        await stopping
        keeping.cancel()
    log.info("Broker %d is stopping", broker.broker_id)
    if hands_over and not failed:
        await _shut_down_controlled(broker, stop)
    try:
        await broker.stop(controlled=False, timeout_s=STOP_TIMEOUT_S)
    except TimeoutError:
        log.error(
            "The broker did not stop within %s s; its logs will be recovered at the next startup",
            STOP_TIMEOUT_S,
        )
        return 1
    except Exception:
        log.exception("The broker did not stop cleanly; its logs will be recovered at the next startup")
        return 1
    return 1 if failed else 0


async def keep_modules() -> None:
    """Copy the modules of this process after a delay, so that a running broker can be upgraded."""
    await asyncio.sleep(_KEEP_MODULES_AFTER_S)
    from kafka_compat import kept_modules

    await kept_modules.keep()


async def _start(broker: Broker) -> None:
    await broker.start()
    if broker.config.create_topics:
        await broker.membership.create_wanted_topics(broker.config.create_topics)


async def _shut_down_controlled(broker: Broker, stop: Stop) -> None:
    """Move leadership to other brokers, unless a second signal arrives."""
    handing_over = asyncio.ensure_future(broker.shut_down_controlled())
    impatient = asyncio.ensure_future(stop.requested_again.wait())
    await asyncio.wait([handing_over, impatient], return_when=asyncio.FIRST_COMPLETED)
    impatient.cancel()
    handing_over.cancel()
    await asyncio.wait([handing_over])
    if not handing_over.cancelled() and handing_over.exception() is not None:
        log.error("Could not move leadership to other brokers", exc_info=handing_over.exception())


def new_broker(config: BrokerConfig, http: HttpServices | None = None, *, syncs: bool = True) -> Broker:
    """Create a standalone broker or, with zookeeper.connect or a metadata quorum, a broker of a cluster.
    `syncs` is the parameter of BrokerHooks.
    """
    hooks = hooks_of(http, syncs=syncs)
    if config.quorum is not None and config.str("zookeeper.connect"):
        from kafka_compat.broker import migration_broker
        from kafka_compat.cluster.zookeeper_sessions import zookeeper_sessions

        return migration_broker(config, zookeeper_sessions(config), hooks)
    if config.quorum is not None:
        from kafka_compat.quorum.alone import is_standalone

        if not is_standalone(config.quorum, config.log_dirs[0]):
            from kafka_compat.broker import quorum_broker

            return quorum_broker(config, hooks)
    if not config.str("zookeeper.connect"):
        from kafka_compat.broker import standalone_broker

        return standalone_broker(config, hooks)
    from kafka_compat.broker import cluster_broker
    from kafka_compat.cluster.zookeeper_sessions import zookeeper_sessions

    return cluster_broker(config, zookeeper_sessions(config), hooks)


def tell_ready(brokers: Sequence[Broker], http_url: str | None = None, *, as_json: bool) -> None:
    """Print that the brokers are ready: one line per broker, or one line of JSON for all."""
    if not as_json:
        for broker in brokers:
            tell(broker.config, ready_line(broker))
        if http_url is not None:
            tell(brokers[0].config, f"HTTP on {http_url}")
        return
    import json

    found = [
        {
            "broker_id": broker.broker_id,
            "listeners": {
                name: {"host": host, "port": port} for name, (host, port) in broker.addresses.items()
            },
            "log_dirs": list(broker.config.log_dirs),
        }
        for broker in brokers
    ]
    write(json.dumps({"brokers": found, "http": http_url}))


def ready_line(broker: Broker) -> str:
    """Format the status line of a ready broker, with its addresses and data directories."""
    addresses = ", ".join(
        f"{name}://{f'[{host}]' if ':' in host else host}:{port}"
        for name, (host, port) in broker.addresses.items()
    )
    return f"Broker {broker.broker_id} ready on {addresses}, data in {', '.join(broker.config.log_dirs)}"


def run_loop(serving: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine, and return its exit code. If uvloop is installed (the `fast` extra), use its event
    loop, which saves a sixth of the CPU time of small requests.
    """
    try:
        with uncollected():
            from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        log.info("Using the %s event loop", type(runner.get_loop()).__module__)
        return runner.run(serving)
