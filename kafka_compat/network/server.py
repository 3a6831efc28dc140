"""Server of all listeners. It accepts connections, and closes idle, slow and memory-occupying connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.network.accepting import Acceptor, Descriptors
from kafka_compat.network.admission import Admission, Door, Limits
from kafka_compat.network.budget import AnswerBudget, RequestBudget
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import Frame, InvalidFrame
from kafka_compat.network.strangers import FAILED, FAILED_AGAIN, Authentications, Strangers, describe
from kafka_compat.network.tls import SCRATCH_BYTES
from kafka_compat.network.turns import Turns
from kafka_compat.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from kafka_compat.api.api import Part
    from kafka_compat.config import Listener
    from kafka_compat.errors import KafkaError
    from kafka_compat.lazy import Lazy
    from kafka_compat.network.host import Entrance, ReachedAt
    from kafka_compat.network.refusals import Refusals
    from kafka_compat.quotas.connection_rates import ConnectionRates

log = logging.getLogger(__name__)

REAP_INTERVAL_S = 1.0
REAPED_AT_ONCE: Final = 1_000
"""Maximum number of connections checked in each interval."""
QUIET_S: Final = 10.0
# Maximum time in seconds for incomplete or unserved requests while other connections wait for memory.
STALLED_S = 5.0
_RELIEF_INTERVAL_S: Final = 0.05
EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")
_PAUSE_MAX_S: Final = 86_400.0


Refusal = Callable[[Connection, Frame, "KafkaError"], "list[Part] | None"]
"""A function that returns the response to a frame rejected with an error, or None for no response."""


def _no_answer(connection: Connection, frame: Frame, error: KafkaError) -> None:
    return None


class Server:
    """The server for all listeners. It accepts connections, and passes their frames to `dispatch`."""

    dispatch: Callable[[Connection, Frame], bool]
    """Function that serves a frame. Returns False if the connection must be closed."""
    refusal: Refusal

    def __init__(self, limits: Limits, rates: Lazy[ConnectionRates]) -> None:
        """`rates` is created when the first connection rate limit is set."""
        self.limits = limits
        self._rates = rates
        self._tls_scratch: memoryview | None = None
        self.entrances: dict[str, Entrance] = {}
        """Maps listener names to the required authentication. Other listeners require none."""
        # Use sendfile on Linux only, because os.sendfile has different limits on macOS.
        self.use_sendfile = sys.platform.startswith("linux")
        self.loop = asyncio.get_running_loop()
        self.turns = Turns(monotonic, self.loop.call_soon)
        self.request_budget = RequestBudget(limits.request_memory_bytes)
        self.answer_budget = AnswerBudget(limits.answer_memory_bytes, self.loop.call_soon, self._relieve_soon)
        self.connections: set[Connection] = set()
        self.bound: dict[str, tuple[str, int]] = {}
        """Maps listener names to the configured host and the actual port, even if port 0 is configured."""
        self.accepted: dict[str, int] = {}
        """Number of connections that each listener has accepted, including closed ones."""
        self.reached_at: ReachedAt | None = None
        self.authentications = Authentications()
        self._admission: Admission
        self._doors: list[Door] = []
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._acceptors: list[Acceptor] = []
        self.descriptors = Descriptors(self.loop)
        self._strangers = Strangers()
        self.refusals: Refusals | None = None
        """Recent rejections, or None if they are not recorded."""
        self._reaper: asyncio.TimerHandle | None = None
        self._to_reap: Iterator[Connection] = iter(())
        self._relief: asyncio.TimerHandle | None = None

    def bind(self, listener: Listener) -> tuple[str, int]:
        """Bind the address without accepting connections yet. Raises OSError if it is in use or not local."""
        family = socket.AF_INET6 if ":" in listener.host or not listener.host else socket.AF_INET
        if family == socket.AF_INET6 and not listener.host and not socket.has_dualstack_ipv6():
            family = socket.AF_INET
        address: tuple[str, int]
        if listener.host:
            # Pass ASCII names as bytes: for a str, Python would import its large `idna` codec.
            host = listener.host.encode() if listener.host.isascii() else listener.host
            found = socket.getaddrinfo(host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            # If a name has both kinds of addresses, use the first IPv4 address, as Java does.
            family, _, _, _, bind_to = min(found, key=lambda each: each[0] != socket.AF_INET)
            address = (str(bind_to[0]), int(bind_to[1]))
        else:
            address = ("", listener.port)
        listening = socket.create_server(
            address,
            family=family,
            backlog=512,
            # As in Java, "::" means all addresses, also those of IPv4.
            dualstack_ipv6=family == socket.AF_INET6
            and address[0] in ("", "::")
            and socket.has_dualstack_ipv6(),
        )
        listening.setblocking(False)
        if self.limits.receive_buffer_bytes > 0:
            # Accepted sockets inherit this buffer size. Setting it later would not change their first window.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)
        self._sockets.append((listener, listening))
        self._note_bound(listener, listening)
        return self.bound[listener.name]

    def _note_bound(self, listener: Listener, listening: socket.socket) -> None:
        host, port = listening.getsockname()[:2]
        if host not in EVERY_INTERFACE:
            # Keep the configured name: certificates are issued for it, and clients resolve it.
            host = listener.host
        self.bound[listener.name] = (host, port)

    def take_over(self, sockets: list[tuple[Listener, socket.socket]]) -> None:
        """Listen on the sockets that `give_up_sockets` of another server returned. Replaces `bind`."""
        for listener, listening in sockets:
            self._sockets.append((listener, listening))
            self._note_bound(listener, listening)

    def give_up_sockets(self) -> list[tuple[Listener, socket.socket]]:
        """Stop accepting connections, and return the listening sockets. New clients wait in the backlogs."""
        for acceptor in self._acceptors:
            acceptor.let_go()
        self._acceptors.clear()
        sockets, self._sockets = self._sockets, []
        return sockets

    async def start(
        self, dispatch: Callable[[Connection, Frame], bool], refusal: Refusal = _no_answer
    ) -> None:
        """Accept connections on all bound listeners, including connections in the backlog, and serve their
        frames with `dispatch`.
        """
        self.dispatch = dispatch
        self.refusal = refusal
        self._admission = Admission(self.limits, list(self.bound), self._rates, self.note_refusal)
        for listener, listening in self._sockets:
            door = Door(self.loop, listener.name, self._admission, self._let_in)
            acceptor = Acceptor(self.loop, listening, self.descriptors, door.knock)
            door.hold, door.go_on = acceptor.hold, acceptor.go_on
            self._doors.append(door)
            self._acceptors.append(acceptor)
            acceptor.start()
        self._reaper = self.loop.call_later(REAP_INTERVAL_S, self._reap)

    def stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.stop()
        for door in self._doors:
            door.close()
        for _, listening in self._sockets:
            listening.close()
        self.descriptors.close()

    def stop(self) -> None:
        """Stop listening and close every connection."""
        for timer in (self._reaper, self._relief):
            if timer is not None:
                timer.cancel()
        self.stop_accepting()
        for connection in list(self.connections):
            connection.close()

    def pause(self) -> None:
        """Stop accepting connections and serving requests until `resume` is called. Clients wait."""
        for acceptor in self._acceptors:
            acceptor.hold()
        for connection in self.connections:
            connection.mute(_PAUSE_MAX_S)

    def resume(self) -> None:
        """Resume accepting connections and serving requests."""
        for acceptor in self._acceptors:
            acceptor.go_on()
        for connection in self.connections:
            connection.unmute()

    def set_limits(self, limits: Limits) -> None:
        """Apply new limits. Existing connections stay open."""
        self.limits = self._admission.limits = limits
        self._admission.look_again()

    def _let_in(self, listener_name: str, accepted: socket.socket, peer: Any) -> None:
        connection = Connection(self, listener_name, accepted, peer, self.entrances.get(listener_name))
        self.connections.add(connection)
        self.accepted[listener_name] = self.accepted.get(listener_name, 0) + 1
        self._admission.enter(listener_name, connection.peer_host)
        if self._admission.has_too_many():
            self._make_room()

    def _make_room(self) -> None:
        """Close the least recently active connection, because an inter-broker connection needs a slot."""
        others = [
            one
            for one in self.connections
            if not one.closed and not self._admission.is_protected(one.listener_name)
        ]
        if others:
            idlest = min(others, key=lambda one: one.active_s)
            log.info("Closed the connection from %s to admit a broker (max.connections)", idlest.peer_host)
            self.note_refusal(idlest.peer_host, "a broker needed its slot (max.connections)")
            idlest.abort()

    def forget(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
            self._admission.leave(connection.listener_name, connection.peer_host)

    @property
    def tls_scratch(self) -> memoryview:
        """The receive buffer that all TLS connections share."""
        if self._tls_scratch is None:
            self._tls_scratch = memoryview(bytearray(SCRATCH_BYTES))
        return self._tls_scratch

    def complain(self, host: str, error: InvalidFrame) -> None:
        self._strangers.complain(host, error, self.limits.request_max_bytes, monotonic())
        if self.refusals is not None:
            self.refusals.note(host, describe(error, self.limits.request_max_bytes))

    def refused(self, connection: Connection, reason: str) -> None:
        """Log why a client was rejected, and count the failed authentication."""
        again = connection.principal is not ANONYMOUS
        self.authentications.count(connection.listener_name, FAILED_AGAIN if again else FAILED)
        host = connection.peer_host
        text = f"Rejected a client from {host} on listener {connection.listener_name}: {reason}"
        self._strangers.tell(host, text, monotonic())
        self.note_refusal(host, f"rejected on listener {connection.listener_name}: {reason}")

    def note_refusal(self, host: str, reason: str) -> None:
        """Record the rejection of an address and the reason, for the web console."""
        if self.refusals is not None:
            self.refusals.note(host, reason)

    def _reap(self) -> None:
        now_s = monotonic()
        self._strangers.summarize(now_s)
        idle_max_s = self.limits.idle_max_ms / 1000
        deadline_s = self.limits.frame_deadline_ms / 1000
        memory_is_short = self.request_budget.someone_waits
        for connection in list(self.connections) if memory_is_short else self._some_connections():
            if connection.closed:
                continue
            quiet_s = now_s - connection.active_s
            if connection.frame_is_late(now_s, deadline_s):
                log.info("Closed the connection from %s: a request arrived too slowly", connection.peer_host)
                self.note_refusal(
                    connection.peer_host, "a request arrived too slowly (kafka.compat.frame.timeout.ms)"
                )
                connection.abort()
            elif memory_is_short and connection.holds_up(now_s, STALLED_S):
                log.info(
                    "Closed the connection from %s: it held memory that other connections needed "
                    "(queued.max.request.bytes)",
                    connection.peer_host,
                )
                self.note_refusal(
                    connection.peer_host,
                    "it held memory that other connections needed (queued.max.request.bytes)",
                )
                connection.abort()
            elif quiet_s > idle_max_s and connection.idle:
                log.debug("Closed the connection from %s: it was idle for too long", connection.peer_host)
                connection.abort()
            elif quiet_s > QUIET_S:
                connection.release_memory()
        self._reaper = self.loop.call_later(REAP_INTERVAL_S, self._reap)

    def _some_connections(self) -> list[Connection]:
        """Return the next connections to check, at most REAPED_AT_ONCE, starting over after the last one."""
        some = list(islice(self._to_reap, REAPED_AT_ONCE))
        if len(some) < REAPED_AT_ONCE:
            self._to_reap = iter(list(self.connections))
            some += islice(self._to_reap, REAPED_AT_ONCE - len(some))
        return some

    def _relieve_soon(self) -> None:
        if self._relief is None:
            self._relief = self.loop.call_later(_RELIEF_INTERVAL_S, self._relieve)

    def _relieve(self) -> None:
        self._relief = None
        budget = self.answer_budget
        cut_off = budget.relieve(self.connections, monotonic())
        if cut_off:
            log.warning(
                "Disconnected clients that did not read their responses (connections: %d): unsent responses "
                "took more than twice kafka.compat.queued.max.response.bytes (%d)",
                cut_off,
                budget.limit_bytes,
            )
        if budget.full:
            self._relieve_soon()
