"""Which brokers of a process reach each other, and who stands still: what tests do to the ways between them.

Brokers say in each request who they are (`broker-N`, as the controller `controller-N`).

A broker that is paused serves no request, new connections wait to be accepted, what it asks of other brokers
waits as well, and it does not reach the metadata store: its session expires if that takes too long. What was
under way already is finished.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kafka_compat.api.stages import StagedContext
from kafka_compat.control.coordination_link import CoordinationLink
from kafka_compat.control.fault import Fault

if TYPE_CHECKING:
    from kafka_compat.api.caller import Session
    from kafka_compat.broker import Broker
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.embedded import EmbeddedSession
    from kafka_compat.coordinator_runtime.scheduler import Scheduler

_NAMES = ("broker-", "controller-")
_STILL_S = 86_400.0
_CLOSED = Fault(is_dropped=True)


class Links:
    """Those of all brokers of a process."""

    def __init__(self) -> None:
        self.cuts: set[frozenset[int]] = set()
        """Pairs of brokers that do not reach each other."""
        self.coordination: dict[int, CoordinationLink] = {}
        self.cut_off: set[int] = set()
        """Brokers that do not reach the metadata store, by a test's word."""
        self.paused: dict[int, Broker] = {}
        self._sessions: dict[tuple[int, int], set[Session]] = {}
        """From the first broker to the second."""

    def through(
        self,
        config: BrokerConfig,
        connect: Callable[[], Awaitable[EmbeddedSession]],
        scheduler: Scheduler,
    ) -> ConnectStore:
        """The way to the store of a broker that is made now."""
        timeout_ms = config.int("zookeeper.session.timeout.ms")
        link = self.coordination[config.broker_id] = CoordinationLink(connect, timeout_ms, scheduler)
        return link.connect

    def fault_for(self, ctx: StagedContext) -> Fault | None:
        """What becomes of a request that a broker sends; None where it is served as ever."""
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
            # The first of a connection tells nobody anything; those after it wait.
            session.line.mute(_STILL_S)
        return None

    def cut(self, one: int, other: int) -> None:
        """Have two brokers not reach each other."""
        self.cuts.add(frozenset((one, other)))
        for pair in ((one, other), (other, one)):
            for session in self._sessions.pop(pair, ()):
                if session.line is not None:
                    session.line.abort()

    def cut_coordination(self, broker_id: int) -> None:
        """Have a broker not reach the metadata store."""
        self.cut_off.add(broker_id)
        self.coordination[broker_id].cut()

    def mend(self, broker_id: int) -> None:
        """Have a broker reach all others, and the store."""
        self.cuts = {pair for pair in self.cuts if broker_id not in pair}
        self.cut_off.discard(broker_id)
        if broker_id in self.coordination and broker_id not in self.paused:
            self.coordination[broker_id].mend()

    def pause(self, broker: Broker) -> None:
        """Have a broker stand still."""
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
        """Have it go on."""
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
        """Have everybody reach everybody."""
        for broker_id in list(self.paused):
            self.resume(broker_id)
        self.cuts.clear()
        for broker_id in list(self.cut_off):
            self.mend(broker_id)


def _sender(client_id: str | None) -> int | None:
    """Which broker asks, if one does."""
    for name in _NAMES:
        if client_id is not None and client_id.startswith(name) and client_id[len(name) :].isdecimal():
            return int(client_id[len(name) :])
    return None
