"""Connection limits, which decide whether new connections are served, delayed or closed.

Rules
1. When no slot is free for a new connection (max.connections of the broker or of the listener), the listener
   stops accepting until a slot is free; clients wait in the backlog. If there are several listeners, the
   inter-broker listener is exempt from the broker's limit: instead, the longest-idle connection of another
   listener is closed.
2. When the rate of new connections exceeds the limit of the broker or the listener
   (max.connection.creation.rate), the listener delays the last connection, and accepts no other connection in
   the meantime (KIP-612).
3. When the rate of new connections from one address exceeds its connection_creation_rate, further connections
   from it are accepted, but not served, and are closed after the address's throttle time.
4. A connection that exceeds the limit of its address (max.connections.per.ip) is closed at once.
"""

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kafka_compat.lazy import Lazy
    from kafka_compat.quotas.connection_rates import ConnectionRates

log = logging.getLogger(__name__)

LEFT_ALONE_MAX = 256
"""Maximum number of connections that rule 3 keeps open. Further connections are closed at once."""
MAPPED: Final = "::ffff:"
"""Prefix of an IPv4 address on a dual-stack socket."""


UNLIMITED = 2**31 - 1
"""Value of Kafka's settings that means an unlimited rate or number of connections."""


class Limits(NamedTuple):
    """Limits for the connections and memory of a server.

    `frame_deadline_ms` limits how long a frame may stay incomplete. Without it, a client that stops in the
    middle of a frame would occupy a buffer until connections.max.idle.ms. `request_memory_bytes` and
    `answer_memory_bytes` apply to all connections together (see budget.py). `connections_max` applies to the
    server, and to each listener without its own limit.
    """

    request_max_bytes: int
    idle_max_ms: int
    connections_max: int
    connections_per_ip_max: int
    frame_deadline_ms: int
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    connections_per_ip_overrides: Mapping[str, int] = MappingProxyType({})
    request_memory_bytes: int = sys.maxsize
    answer_memory_bytes: int = sys.maxsize
    connections_per_listener: Mapping[str, int] = MappingProxyType({})
    inter_broker_listener: str = ""


def bound(setting_bytes: int) -> int:
    """Return the limit for a setting's value. As in Kafka, zero and negative values mean no limit."""
    return setting_bytes if setting_bytes > 0 else sys.maxsize


class Admission:
    """The connection counts of a server, and the decisions that depend on them."""

    def __init__(
        self,
        limits: Limits,
        listeners: Sequence[str],
        rates: "Lazy[ConnectionRates]",
        note_refusal: Callable[[str, str], None],
    ) -> None:
        """`rates` is created when the first rate limit is set. `note_refusal` is called with the address of
        each rejected connection and the reason.
        """
        self.limits = limits
        self._rates = rates
        self._note_refusal = note_refusal
        self.total = 0
        self._several = len(listeners) > 1
        self._per_ip: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self.waiting: list[Callable[[], None]] = []
        """Callbacks of the listeners that wait for a free slot."""

    def wait_ms(self, listener: str) -> int:
        """Return the listener's throttle time in ms after a new connection (rule 2)."""
        rates = self._rates.made
        if rates is None:
            return 0
        return rates.wait_ms(listener, _now_ms(), with_broker=not self.is_protected(listener))

    def refused_ms(self, listener: str, host: str) -> int:
        """Return the time in ms after which to close a new connection (rule 3), or 0 if it may be served."""
        rates = self._rates.made
        if rates is None:
            return 0
        with_broker = not self.is_protected(listener)
        return rates.refused_ms(listener, host.removeprefix(MAPPED), _now_ms(), with_broker=with_broker)

    def is_protected(self, listener: str) -> bool:
        """Return whether this listener is the inter-broker listener and the broker has other listeners."""
        return self._several and listener == self.limits.inter_broker_listener

    def has_slot(self, listener: str) -> bool:
        limits = self.limits
        listener_max = limits.connections_per_listener.get(listener, limits.connections_max)
        if self._per_listener[listener] >= listener_max:
            return False
        return self.is_protected(listener) or self.total < limits.connections_max

    def has_too_many(self) -> bool:
        """Return whether exempt inter-broker connections have pushed the total above the broker's limit."""
        return self.total > self.limits.connections_max

    def allows(self, host: str) -> bool:
        """Return whether the address may open one more connection (rule 4)."""
        limits = self.limits
        per_ip_max = limits.connections_per_ip_overrides.get(host, limits.connections_per_ip_max)
        if self._per_ip[host] < per_ip_max:
            return True
        log.info("Rejected a connection from %s: it exceeds max.connections.per.ip=%d", host, per_ip_max)
        self._note_refusal(host, f"it exceeds max.connections.per.ip={per_ip_max}")
        return False

    def enter(self, listener: str, host: str) -> None:
        self.total += 1
        self._per_ip[host] += 1
        self._per_listener[listener] += 1

    def leave(self, listener: str, host: str) -> None:
        self.total -= 1
        self._per_ip[host] -= 1
        self._per_listener[listener] -= 1
        if not self._per_ip[host]:
            del self._per_ip[host]
        self.look_again()

    def look_again(self) -> None:
        """Notify the listeners that wait for a slot."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()


class Door:
    """Admission of one listener's connections. `hold` and `go_on` pause and resume its acceptor. `let_in`
    takes over an admitted connection.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: str,
        admission: Admission,
        let_in: Callable[[str, socket.socket, Any], None],
    ) -> None:
        self.hold: Callable[[], None]
        self.go_on: Callable[[], None]
        self._loop = loop
        self._listener = listener
        self._admission = admission
        self._let_in = let_in
        self._held: tuple[socket.socket, Any] | None = None
        self._waits: asyncio.TimerHandle | None = None
        self._left_alone: dict[socket.socket, asyncio.TimerHandle] = {}

    def knock(self, accepted: socket.socket, peer: Any) -> None:
        """Admit, delay or close a new connection."""
        admission, listener = self._admission, self._listener
        wait_ms = admission.wait_ms(listener)
        if wait_ms <= 0 and admission.has_slot(listener):
            self._enter(accepted, peer)
            return
        self._held = (accepted, peer)
        self.hold()
        if wait_ms > 0:
            self._waits = self._loop.call_later(wait_ms / 1000, self._look)
        else:
            log.info("Listener %s stopped accepting connections: max.connections was reached", listener)
            admission.waiting.append(self._look)

    def close(self) -> None:
        """Close the delayed connections."""
        if self._waits is not None:
            self._waits.cancel()
        if self._held is not None:
            self._held[0].close()
            self._held = None
        for left, timer in self._left_alone.items():
            timer.cancel()
            left.close()
        self._left_alone.clear()

    def _look(self) -> None:
        self._waits = None
        if self._held is None:
            return
        if not self._admission.has_slot(self._listener):
            self._admission.waiting.append(self._look)
            return
        accepted, peer = self._held
        self._held = None
        self._enter(accepted, peer)
        self.go_on()

    def _enter(self, accepted: socket.socket, peer: Any) -> None:
        host = peer[0] if peer else ""
        refused_ms = self._admission.refused_ms(self._listener, host)
        if refused_ms > 0 and len(self._left_alone) < LEFT_ALONE_MAX:
            timer = self._loop.call_later(refused_ms / 1000, self._close_left, accepted)
            self._left_alone[accepted] = timer
        elif refused_ms > 0 or not self._admission.allows(host):
            accepted.close()
        else:
            try:
                self._let_in(self._listener, accepted, peer)
            except OSError as error:
                # The client has closed the connection, so its socket options cannot be set.
                log.debug("Closed a connection during its setup: %s", error)
                accepted.close()

    def _close_left(self, left: socket.socket) -> None:
        del self._left_alone[left]
        left.close()


def _now_ms() -> int:
    return int(monotonic() * 1000)
