"""One broker of `--processes`, and the process that runs it: one after the other, when one dies."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_compat import own_processes
from kafka_compat.cli.http_services import LISTENER
from kafka_compat.cli.local_brokers import listeners_text
from kafka_compat.cli.orders import READY, REFUSED, STOP, Orders
from kafka_compat.config import BrokerConfig, TopicToCreate
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.store_server import StoreServer
from kafka_compat.coordination.store.store_wire import BadFrame

log = logging.getLogger(__name__)


class End(NamedTuple):
    """How a process ended: its exit code, or the signal's number below 0."""

    code: int
    refusal: str | None
    """Why its broker could not start, if it said so."""
    served_s: float | None
    """How long it had served; None when it never did."""

    def __str__(self) -> str:
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        why = f": {self.refusal}" if self.refusal else ""
        return f"ended with exit code {self.code}{why}"


class SupervisedBroker:
    """A broker that keeps its id, its ports and its folders over the lives of its processes.

    For each life: `launch`, `instruct`, and `end` waits for its end.
    """

    def __init__(self, config: BrokerConfig, on_ready: Callable[[], None], *, verbose: bool) -> None:
        """`on_ready` is called each time when a process of it serves."""
        self.broker_id = config.broker_id
        self.listening: list[tuple[str, str, int]] = []
        """Listener, host and port where it listens, or did; empty before it first served."""
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
        """Whether its process of now got so far."""
        return self._ready_s is not None

    async def launch(self) -> None:
        """Start a process, which waits for its orders."""
        self._server = self._refusal = self._ready_s = None
        here, there = socket.socketpair()
        with there:
            self._process = await asyncio.create_subprocess_exec(
                *own_processes.command("kafka_compat.cli.process_broker", f"broker-{self.broker_id}"),
                stdin=there.fileno(),
                env=own_processes.environment(),
                # A terminal's Ctrl-C is for the process that has them all.
                process_group=0,
            )
        self._link = await Link.over(here, self._receive, self._ended)

    def instruct(self, store: EmbeddedMetadataStore | None, topics: tuple[TopicToCreate, ...] = ()) -> None:
        """Tell it what to be. `store`: what its brokers share when they have no ZooKeeper."""
        assert self._link is not None
        if store is not None:
            self._server = StoreServer(store, self._session_timeout_ms, self._link.send)
        self._link.send(Orders(self._settings, topics, self._verbose).encode())

    def tell_to_stop(self, *, at_once: bool = False) -> None:
        """Have it stop, if there is a process; `at_once`: not to wait for successors."""
        if self._link is not None:
            self._link.send([STOP, at_once])

    def kill(self) -> bool:
        """SIGKILL. Whether there was a process."""
        if self._process is None or self._process.returncode is not None:
            return False
        self._process.kill()
        return True

    async def end(self) -> End:
        """Wait until its process is gone, and what it said was heard."""
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
                # Where it listened on any free port, it will be looked for there. The hosts stay as given:
                # every interface is more than the address that it is bound as.
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
                    raise BadFrame(f"broker {self.broker_id} says {message!r:.80}")
                self._server.receive(message)

    def _ended(self) -> None:
        if self._server is not None:
            self._server.end()
