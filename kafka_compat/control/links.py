"""Simulated network partitions between the brokers of a process, and paused brokers, for tests.

Requests from brokers are recognized by their client ID: `broker-N` or, for the controller, `controller-N`.

A paused broker does not serve requests. New connections, and its own requests to other brokers and to the
metadata store, wait; its session may expire. Operations in progress are finished.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.api.stages import StagedContext
from kafka_compat.control.fault import Fault
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.embedded import EmbeddedSession
from kafka_compat.coordination.store.metadata_store import MetadataStore, SessionState, Stat, Watch
from kafka_compat.http.routes import CONFLICT, NOT_FOUND, Answer, BadCall, Call, Route, integer, natural

if TYPE_CHECKING:
    from kafka_compat.api.caller import Session
    from kafka_compat.broker import Broker
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordinator_runtime.scheduler import Scheduler, TimerHandle


class CoordinationLink:
    """A broker's connection to the metadata store of its process. Tests can cut the link.

    While the link is cut, the broker's requests wait, and it receives no events. Its session expires after
    zookeeper.session.timeout.ms. As with ZooKeeper, the broker is notified of the expiration only after the
    link is restored.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[EmbeddedSession]], timeout_ms: int, scheduler: Scheduler
    ) -> None:
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._scheduler = scheduler
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._expiry: TimerHandle | None = None
        self._session: LinkedSession | None = None
        self._unheard: list[Callable[[], None]] = []
        self._ending: asyncio.Future[None] | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the link is cut."""
        return not self._is_open.is_set()

    async def connect(self) -> MetadataStore:
        """Wait until the link works, then open a session and return it."""
        await self.reach()
        self._session = LinkedSession(self, await self._connect())
        return self._session

    async def reach(self) -> None:
        """Wait until the link works."""
        await self._is_open.wait()

    def hear(self, call: Callable[[], None]) -> None:
        """Deliver an event to the broker by calling `call`, as soon as the link works."""
        if self.is_cut:
            self._unheard.append(call)
        else:
            call()

    def cut(self) -> None:
        """Cut the link until `mend` is called."""
        if not self.is_cut:
            self._is_open.clear()
            self._expiry = self._scheduler.call_later(self._timeout_ms, self._expire)

    def mend(self) -> None:
        """Restore the link, and deliver the events that occurred in the meantime."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._is_open.set()
        unheard, self._unheard = self._unheard, []
        for call in unheard:
            call()

    async def expire(self) -> None:
        """Expire the current session, as if the broker had stopped sending heartbeats."""
        if self._session is not None and self._session.held.state is SessionState.CONNECTED:
            await self._session.held.expire()

    def _expire(self) -> None:
        self._ending = asyncio.ensure_future(self.expire())


class LinkedSession(MetadataStore):
    """A metadata store session over a link that tests can cut."""

    def __init__(self, link: CoordinationLink, held: EmbeddedSession) -> None:
        self.held = held
        self._link = link

    @property
    def session_id(self) -> int:
        return self.held.session_id

    @property
    def state(self) -> SessionState:
        return SessionState.SUSPENDED if self._link.is_cut else self.held.state

    def on_state(self, listener: stores.StateListener) -> None:
        self.held.on_state(lambda state: self._link.hear(lambda: listener(state)))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        await self._link.reach()
        return await self.held.get(path, self._heard(watch))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        await self._link.reach()
        return await self.held.exists(path, self._heard(watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        await self._link.reach()
        return await self.held.children(path, self._heard(watch))

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | Stat | None]:
        await self._link.reach()
        return await self.held.multi(operations)

    async def close(self) -> None:
        await self.held.close()

    def _heard(self, watch: Watch | None) -> Watch | None:
        if watch is None:
            return None

        def heard(event: stores.Event) -> None:
            self._link.hear(lambda: watch(event))

        return heard


_NAMES = ("broker-", "controller-")
_STILL_S = 86_400.0
_CLOSED = Fault(is_dropped=True)


class Links:
    """The connections of a process's brokers to each other and to the metadata store."""

    def __init__(self) -> None:
        self.cuts: set[frozenset[int]] = set()
        """Pairs of brokers that cannot reach each other."""
        self.coordination: dict[int, CoordinationLink] = {}
        self.cut_off: set[int] = set()
        """Brokers that a test cut off from the metadata store."""
        self.paused: dict[int, Broker] = {}
        self._sessions: dict[tuple[int, int], set[Session]] = {}
        """Maps (client's broker ID, server's broker ID) to the sessions between the two brokers."""

    def through(
        self, config: BrokerConfig, connect: Callable[[], Awaitable[EmbeddedSession]], scheduler: Scheduler
    ) -> ConnectStore:
        """Create a broker's link to the store, and return the function that connects over this link."""
        timeout_ms = config.int("zookeeper.session.timeout.ms")
        link = self.coordination[config.broker_id] = CoordinationLink(connect, timeout_ms, scheduler)
        return link.connect

    def fault_for(self, ctx: StagedContext) -> Fault | None:
        """Return the fault for a request from a broker, or None to serve the request normally."""
        sender = _sender(ctx.client_id)
        if sender is None:
            return None
        here: int = ctx.services.metadata.local_id
        if frozenset((sender, here)) in self.cuts:
            return _CLOSED
        known = self._sessions.setdefault((sender, here), set())
        session = ctx.caller.session
        if session not in known:
            known.difference_update([each for each in known if each.has_left])
            known.add(session)
        if sender in self.paused and session.line is not None:
            # Serve the first request on a connection: it identifies the paused broker. Later requests wait.
            session.line.mute(_STILL_S)
        return None

    def cut(self, one: int, other: int) -> None:
        """Cut the link between two brokers."""
        self.cuts.add(frozenset((one, other)))
        for pair in ((one, other), (other, one)):
            for session in self._sessions.pop(pair, ()):
                if session.line is not None:
                    session.line.abort()

    def cut_coordination(self, broker_id: int) -> None:
        """Cut a broker's link to the metadata store."""
        self.cut_off.add(broker_id)
        self.coordination[broker_id].cut()

    def mend(self, broker_id: int) -> None:
        """Restore all connections of a broker, including its link to the metadata store."""
        self.cuts = {pair for pair in self.cuts if broker_id not in pair}
        self.cut_off.discard(broker_id)
        if broker_id in self.coordination and broker_id not in self.paused:
            self.coordination[broker_id].mend()

    def pause(self, broker: Broker) -> None:
        """Stop a broker from serving and sending requests until `resume` is called."""
        broker_id = broker.broker_id
        self.paused[broker_id] = broker
        broker.server.pause()
        for (sender, _), sessions in self._sessions.items():
            if sender == broker_id:
                for session in sessions:
                    if session.line is not None:
                        session.line.mute(_STILL_S)
        if broker_id in self.coordination:
            self.coordination[broker_id].cut()

    def resume(self, broker_id: int) -> None:
        """Resume a broker, if it is paused."""
        broker = self.paused.pop(broker_id, None)
        if broker is None:
            return
        broker.server.resume()
        for (sender, here), sessions in self._sessions.items():
            if sender == broker_id and here not in self.paused:
                for session in sessions:
                    if session.line is not None:
                        session.line.unmute()
        if broker_id in self.coordination and broker_id not in self.cut_off:
            self.coordination[broker_id].mend()

    def clear(self) -> None:
        """Restore all links, and resume all brokers."""
        for broker_id in list(self.paused):
            self.resume(broker_id)
        self.cuts.clear()
        for broker_id in list(self.cut_off):
            self.mend(broker_id)


def _sender(client_id: str | None) -> int | None:
    """Return the ID of the broker that uses this client ID, or None if the client is not a broker."""
    for name in _NAMES:
        if client_id is not None and client_id.startswith(name) and client_id[len(name) :].isdecimal():
            return int(client_id[len(name) :])
    return None


class BrokerFaults:
    """Routes that pause, disconnect and reconnect brokers. They respond with the broker's faults."""

    def __init__(self, brokers: Sequence[Broker], links: Links) -> None:
        self._brokers = brokers
        self._links = links

    def routes(self, prefix: str) -> list[Route]:
        path = prefix + "/brokers"
        one = path + "/{broker}"
        return [
            Route("GET", path, self._all, "brokers, and the connections that are cut"),
            Route("POST", one + "/pause", self._pause, "pause a broker: it stops responding"),
            Route("POST", one + "/resume", self._resume, "resume a paused broker"),
            Route(
                "POST",
                one + "/cut",
                self._cut,
                "cut the connection of a broker to another broker, or to ZooKeeper",
                {
                    "from": "integer: broker ID of the other broker",
                    "coordination": "boolean: cut the connection to ZooKeeper: the session expires after "
                    "zookeeper.session.timeout.ms",
                },
            ),
            Route("POST", one + "/mend", self._mend, "restore all connections of a broker"),
            Route("POST", one + "/expire", self._expire, "expire the ZooKeeper session of a broker"),
        ]

    async def _all(self, call: Call) -> Answer:
        return [self._shown(broker) for broker in self._brokers]

    async def _pause(self, call: Call) -> Answer:
        broker = self._found(call)
        self._links.pause(broker)
        return self._shown(broker)

    async def _resume(self, call: Call) -> Answer:
        broker = self._found(call)
        self._links.resume(broker.broker_id)
        return self._shown(broker)

    async def _cut(self, call: Call) -> Answer:
        broker = self._found(call)
        if ("from" in call.body) == (call.body.get("coordination") is True):
            raise BadCall("expected either from, the ID of another broker, or coordination=true")
        if "from" not in call.body:
            self._session(broker)
            self._links.cut_coordination(broker.broker_id)
            return self._shown(broker)
        other = integer(call, "from", least=0)
        if other == broker.broker_id or other not in [each.broker_id for each in self._brokers]:
            raise BadCall(f"from={other}: expected another of {self._known()}", NOT_FOUND)
        self._links.cut(broker.broker_id, other)
        return self._shown(broker)

    async def _mend(self, call: Call) -> Answer:
        broker = self._found(call)
        self._links.mend(broker.broker_id)
        return self._shown(broker)

    async def _expire(self, call: Call) -> Answer:
        broker = self._found(call)
        self._session(broker)
        await self._links.coordination[broker.broker_id].expire()
        return self._shown(broker)

    def _session(self, broker: Broker) -> None:
        if broker.broker_id not in self._links.coordination:
            raise BadCall(
                f"the session of broker {broker.broker_id} cannot be expired: expected one of several "
                "brokers in a process (--brokers)",
                CONFLICT,
            )

    def _found(self, call: Call) -> Broker:
        broker_id = natural(call.path["broker"], "the broker")
        for broker in self._brokers:
            if broker.broker_id == broker_id:
                return broker
        raise BadCall(f"unknown broker {broker_id}: expected one of {self._known()}", NOT_FOUND)

    def _known(self) -> str:
        return ", ".join(str(broker.broker_id) for broker in self._brokers)

    def _shown(self, broker: Broker) -> dict[str, Any]:
        broker_id = broker.broker_id
        cuts = [pair for pair in self._links.cuts if broker_id in pair]
        return {
            "broker": broker_id,
            "is_paused": broker_id in self._links.paused,
            "cut_from": sorted(other for pair in cuts for other in pair - {broker_id}),
            "is_cut_from_coordination": broker_id in self._links.cut_off,
        }
