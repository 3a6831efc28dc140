"""`kafka-compat serve --processes N`: a cluster of N brokers on this machine, each in its own process.

The supervisor serves no clients. It starts the broker processes, restarts processes that die, and stops them;
without zookeeper.connect, it runs their shared metadata store. To stay small, it imports no broker code.

Rules
1. Each broker keeps its ID, ports and directories across its processes.
2. If a broker fails to start the first time, the command ends. A broker that dies later is restarted: at
   once, or after growing delays if it soon dies again (RestartWaits).
3. When a process's connection ends, its sessions end: the other brokers immediately consider the broker dead.
4. When the supervisor dies, its connections to the broker processes close, and these processes stop.
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_compat import own_processes
from kafka_compat.cli.http_services import LISTENER
from kafka_compat.cli.local_brokers import Tree, address, broker_configs, http_listeners, listeners_text
from kafka_compat.cli.log_output import refuse, tell, tell_started
from kafka_compat.cli.orders import READY, REFUSED, STOP, Orders
from kafka_compat.cli.stop_signals import stop_signals
from kafka_compat.config import BrokerConfig
from kafka_compat.config.environment import TopicToCreate
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.store_server import StoreServer
from kafka_compat.coordination.store.store_wire import BadFrame
from kafka_compat.errors import StartupError


class End(NamedTuple):
    """The exit of a process. If a signal killed the process, `code` is the negative signal number."""

    code: int
    refusal: str | None
    """The reason why the broker did not start, if any."""
    served_s: float | None
    """Seconds that the process served, or None if it never served."""

    def __str__(self) -> str:
        if self.code < 0:
            return f"was killed by {signal.Signals(-self.code).name}"
        why = f": {self.refusal}" if self.refusal else ""
        return f"exited with code {self.code}{why}"


class SupervisedBroker:
    """A broker whose ID, ports and directories survive restarts of its process.

    For each process, call `launch` and `instruct`, and then `end` to wait for its exit.
    """

    def __init__(self, config: BrokerConfig, on_ready: Callable[[], None], *, verbose: bool) -> None:
        """Prepare the broker. `on_ready` is called each time one of its processes begins to serve."""
        self.broker_id = config.broker_id
        self.listening: list[tuple[str, str, int]] = []
        """Current or last listeners, as (name, host, port). Empty until the broker first serves."""
        self._settings = dict(config.static)
        self._hosts = [(listener.name, listener.host) for listener in config.listeners]
        self._session_timeout_ms = config.int("zookeeper.session.timeout.ms")
        self._verbose = verbose
        self._on_ready = on_ready
        self._process: asyncio.subprocess.Process | None = None
        self._link: Link | None = None
        self._server: StoreServer | None = None
        self._refusal: str | None = None
        self._ready_s: float | None = None

    @property
    def serves(self) -> bool:
        """Whether the broker's current process is serving."""
        return self._ready_s is not None

    async def launch(self) -> None:
        """Start a process, which waits for its settings."""
        self._server = self._refusal = self._ready_s = None
        here, there = socket.socketpair()
        with there:
            self._process = await asyncio.create_subprocess_exec(
                *own_processes.command("kafka_compat.cli.process_broker", f"broker-{self.broker_id}"),
                stdin=there.fileno(),
                env=own_processes.environment(),
                # Let only the supervisor handle Ctrl-C in the terminal.
                process_group=0,
            )
        self._link = await Link.over(here, self._receive, self._ended)

    def instruct(self, store: EmbeddedMetadataStore | None, topics: tuple[TopicToCreate, ...] = ()) -> None:
        """Send the process its settings. Brokers without ZooKeeper share the metadata store `store`."""
        assert self._link is not None
        if store is not None:
            self._server = StoreServer(store, self._session_timeout_ms, self._link.send)
        self._link.send(Orders(self._settings, topics, self._verbose).encode())

    def tell_to_stop(self, *, at_once: bool = False) -> None:
        """Order the process, if any, to stop. With `at_once`, leadership is not handed over first."""
        if self._link is not None:
            self._link.send([STOP, at_once])

    def kill(self) -> bool:
        """Send SIGKILL to the process, and return whether a process was running."""
        if self._process is None or self._process.returncode is not None:
            return False
        self._process.kill()
        return True

    async def end(self) -> End:
        """Wait until the process has exited and its messages have been received. Return its exit status."""
        assert self._process is not None
        assert self._link is not None
        code = await self._process.wait()
        await self._link.ended.wait()
        served_s = None if self._ready_s is None else asyncio.get_running_loop().time() - self._ready_s
        if self._server is not None:
            await self._server.settled()
        return End(code, self._refusal, served_s)

    def _receive(self, message: list[Any]) -> None:
        match message:
            case [str(kind), list(listening), str(http_url)] if kind == READY:
                self._ready_s = asyncio.get_running_loop().time()
                self.listening = [(name, host, port) for name, host, port in listening]
                # Reuse the ports, because clients expect the broker there after a restart. Keep the
                # configured hosts, because a wildcard covers more than one address.
                ports = {name: port for name, _, port in self.listening}
                self._settings["listeners"] = listeners_text(
                    (name, host, ports[name]) for name, host in self._hosts
                )
                if http_url:
                    self._settings[LISTENER] = http_url
                self._on_ready()
            case [str(kind), str(why)] if kind == REFUSED:
                self._refusal = why
            case _:
                if self._server is None:
                    raise BadFrame(f"broker {self.broker_id} sent {message!r:.80}")
                self._server.receive(message)

    def _ended(self) -> None:
        if self._server is not None:
            self._server.end()


FIRST_WAIT_S = 0.5
WAIT_S_MAX = 10.0
CALM_S = 60.0
"""Time in seconds after which the exit of a serving process counts as the broker's first."""


class RestartWaits:
    """Restart delays of one broker: first 0, then FIRST_WAIT_S, then doubled up to WAIT_S_MAX."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def after(self, served_s: float) -> float:
        """Return the delay in seconds after the exit of a process that served for `served_s`."""
        if served_s >= CALM_S:
            self._next_s = 0.0
        wait_s = self._next_s
        self._next_s = min(2 * wait_s, WAIT_S_MAX) or FIRST_WAIT_S
        return wait_s


log = logging.getLogger("kafka_compat")

STOP_TIMEOUT_S = 10.0
"""Shutdown timeout of a serving broker in seconds. The timeout in the broker's process is shorter."""
START_TIMEOUT_S = 15.0
"""Additional seconds for a broker that is still starting, because it may wait for stopping brokers."""


async def serve_processes(config: BrokerConfig, count: int, *, verbose: bool, kafka_lines: bool) -> int:
    """Run the brokers until SIGINT or SIGTERM, and return the exit code. With `kafka_lines`, print Kafka's
    startup messages for each broker.
    """
    try:
        return await Supervisor(config, count, verbose=verbose, kafka_lines=kafka_lines).run()
    except StartupError as error:
        return refuse(str(error), config)


class Supervisor:
    """The supervisor of the broker processes. It follows the rules in the module docstring."""

    def __init__(self, config: BrokerConfig, count: int, *, verbose: bool, kafka_lines: bool) -> None:
        """Prepare the brokers. Raises StartupError if a setting is invalid."""
        configs = broker_configs(config, count, config.broker_id)
        for each, http_listener in zip(configs, http_listeners(config, count), strict=True):
            # Set the rack, so that replicas are spread over the machines that share a ZooKeeper.
            each.static.setdefault("broker.rack", socket.gethostname())
            if http_listener is not None:
                each.static[LISTENER] = http_listener
        self._config = config
        self._brokers = [SupervisedBroker(each, self._served, verbose=verbose) for each in configs]
        self._tree: Tree | None = None
        self._is_ready = False
        self._kafka_lines = kafka_lines
        self._stopping = asyncio.Event()
        self._in_time = True
        self._refusal: str | None = None
        self._patience: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Run until all processes exit. Return the exit code. Raises StartupError if brokers cannot start."""
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self._stop)
        launched: list[SupervisedBroker] = []
        try:
            for broker in self._brokers:
                await broker.launch()
                launched.append(broker)
            # Prepare the store while the processes import their modules.
            self._tree = None if self._config.str("zookeeper.connect") else Tree(self._config)
        except (StartupError, OSError) as error:
            for broker in launched:
                broker.tell_to_stop()
            await asyncio.gather(*(broker.end() for broker in launched))
            raise StartupError(str(error)) from error
        for index, broker in enumerate(self._brokers):
            broker.instruct(self._store, () if index else self._config.create_topics)
        if self._stopping.is_set():
            # Repeat the stop order, because the signal may have arrived before the processes existed.
            for broker in self._brokers:
                broker.tell_to_stop()
        codes: list[int] = await asyncio.gather(*(self._keep(broker) for broker in self._brokers))
        if self._patience is not None:
            self._patience.cancel()
        if self._tree is not None:
            await self._tree.close()
        if self._refusal is not None:
            raise StartupError(self._refusal)
        return 0 if self._in_time and not any(codes) else 1

    # --- one broker

    async def _keep(self, broker: SupervisedBroker) -> int:
        """Run a broker's processes in sequence, and return the exit code of the last process."""
        waits = RestartWaits()
        has_served = False
        while True:
            end = await broker.end()
            has_served = has_served or end.served_s is not None
            if self._stopping.is_set():
                return end.code
            if not has_served:
                self._refuse(broker, end)
                return end.code
            log.warning("Broker %d %s", broker.broker_id, end)
            if not await self._start_again(broker, waits, end.served_s or 0.0):
                return 0

    async def _start_again(self, broker: SupervisedBroker, waits: RestartWaits, served_s: float) -> bool:
        """Start another process after a delay, and return True. Return False if the command is stopping."""
        while True:
            wait_s = waits.after(served_s)
            when = f"in {wait_s:g} s" if wait_s else "now"
            log.warning("Restarting broker %d %s", broker.broker_id, when)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
            if self._stopping.is_set():
                return False
            try:
                await broker.launch()
            except OSError as error:
                log.error("Could not start a process for broker %d: %s", broker.broker_id, error)
                served_s = 0.0
                continue
            broker.instruct(self._store)
            if self._stopping.is_set():
                broker.tell_to_stop()
            return True

    @property
    def _store(self) -> EmbeddedMetadataStore | None:
        return None if self._tree is None else self._tree.store

    # --- all brokers

    def _served(self) -> None:
        if not self._is_ready and all(broker.serves for broker in self._brokers):
            self._is_ready = True
            listening = ",".join(address(*broker.listening[0][1:]) for broker in self._brokers)
            tell(self._config, f"{len(self._brokers)} processes ready: {listening}")
            if self._kafka_lines:
                for broker in self._brokers:
                    tell_started(broker.broker_id)

    def _refuse(self, broker: SupervisedBroker, end: End) -> None:
        if self._refusal is None:
            self._refusal = end.refusal or f"broker {broker.broker_id} {end} before it was ready"
        self._stop()

    def _stop(self) -> None:
        """Stop all brokers. After a second call, they do not hand over leadership first."""
        is_again = self._stopping.is_set()
        self._stopping.set()
        for broker in self._brokers:
            broker.tell_to_stop(at_once=is_again)
        if self._patience is not None:
            self._patience.cancel()
        patience_s = STOP_TIMEOUT_S if is_again else self._stop_timeout_s()
        self._patience = asyncio.get_running_loop().call_later(patience_s, self._kill)

    def _stop_timeout_s(self) -> float:
        config, timeout_s = self._config, STOP_TIMEOUT_S
        if not all(broker.serves for broker in self._brokers):
            timeout_s += START_TIMEOUT_S
        if config.str("zookeeper.connect") and config.bool("controlled.shutdown.enable"):
            once_ms = config.int("controlled.shutdown.retry.backoff.ms")
            once_ms += config.int("controller.socket.timeout.ms")
            timeout_s += config.int("controlled.shutdown.max.retries") * once_ms / 1000
        return timeout_s

    def _kill(self) -> None:
        for broker in self._brokers:
            if broker.kill():
                log.error("Broker %d did not stop in time and was killed", broker.broker_id)
                self._in_time = False
