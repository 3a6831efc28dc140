"""Listening sockets, the connections they accepted, and the limits that hold for them."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, Final

from kafka_compat.config import Listener
from kafka_compat.network.accepting import Acceptor, Descriptors
from kafka_compat.network.budget import AnswerBudget, RequestBudget
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import SCRATCH_BYTES, InvalidFrame
from kafka_compat.network.limits import Limits
from kafka_compat.network.strangers import Strangers
from kafka_compat.network.turns import Turns

log = logging.getLogger(__name__)

REAP_INTERVAL_S = 1.0
REAPED_AT_ONCE: Final = 1_000
"""How many connections are looked at in each interval: all of them where there are no more."""
QUIET_S: Final = 10.0
# How long requests may lie unfinished or unserved while others wait for the memory that they hold.
STALLED_S = 5.0
_RELIEF_INTERVAL_S: Final = 0.05


class Server:
    """Accepts connections on every listener and hands their frames to `dispatch`."""

    dispatch: Callable[[Connection, memoryview], bool]
    """Serves a frame; whether the connection stays open."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        # macOS has os.sendfile with other limits; reading and writing works everywhere.
        self.use_sendfile = sys.platform.startswith("linux")
        self.loop = asyncio.get_running_loop()
        self.turns = Turns(monotonic, self.loop.call_soon)
        self.request_budget = RequestBudget(limits.request_memory_bytes)
        self.answer_budget = AnswerBudget(limits.answer_memory_bytes, self.loop.call_soon, self._relieve_soon)
        self.connections: set[Connection] = set()
        self.bound: dict[str, tuple[str, int]] = {}
        self._per_ip: Counter[str] = Counter()
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._acceptors: list[Acceptor] = []
        self.descriptors = Descriptors(self.loop)
        self._strangers = Strangers()
        self._reaper: asyncio.TimerHandle | None = None
        self._to_reap: Iterator[Connection] = iter(())
        self._relief: asyncio.TimerHandle | None = None

    def bind(self, listener: Listener) -> tuple[str, int]:
        """Claim the address without accepting yet. Raises OSError when it is taken or not ours."""
        family = socket.AF_INET6 if ":" in listener.host or not listener.host else socket.AF_INET
        if family == socket.AF_INET6 and not listener.host and not socket.has_dualstack_ipv6():
            family = socket.AF_INET
        address: tuple[str, int]
        if listener.host:
            # As bytes, since text takes the codec for international names, which is much to load.
            host = listener.host.encode() if listener.host.isascii() else listener.host
            found = socket.getaddrinfo(
                host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            family, _, _, _, bind_to = found[0]
            address = (str(bind_to[0]), int(bind_to[1]))
        else:
            address = ("", listener.port)
        listening = socket.create_server(
            address,
            family=family,
            backlog=512,
            dualstack_ipv6=family == socket.AF_INET6 and not listener.host,
        )
        listening.setblocking(False)
        if self.limits.receive_buffer_bytes > 0:
            # Accepted sockets inherit it; set later, it would not count for the window that is offered first.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)
        self._sockets.append((listener, listening))
        host, port = listening.getsockname()[:2]
        self.bound[listener.name] = (host, port)
        return host, port

    async def start(self, dispatch: Callable[[Connection, memoryview], bool]) -> None:
        """Accept connections on everything that was bound, and have `dispatch` serve their frames. Clients
        that came before waited in the backlog.
        """
        self.dispatch = dispatch
        for listener, listening in self._sockets:
            acceptor = Acceptor(self.loop, listening, self.descriptors, self._taker(listener.name))
            self._acceptors.append(acceptor)
            acceptor.start()
        self._reaper = self.loop.call_later(REAP_INTERVAL_S, self._reap)

    def stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.stop()
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

    def _taker(self, listener_name: str) -> Callable[[socket.socket, Any], None]:
        def take(accepted: socket.socket, peer: Any) -> None:
            host = peer[0] if peer else ""
            if self._admits(host):
                self.connections.add(Connection(self, listener_name, accepted, peer))
                self._per_ip[host] += 1
            else:
                accepted.close()

        return take

    def _admits(self, host: str) -> bool:
        limits = self.limits
        per_ip_max = limits.connections_per_ip_overrides.get(host, limits.connections_per_ip_max)
        if self._per_ip[host] >= per_ip_max:
            log.info("refusing a connection from %s: max.connections.per.ip=%d is reached", host, per_ip_max)
            return False
        if len(self.connections) >= limits.connections_max:
            log.info(
                "refusing a connection from %s: max.connections=%d is reached", host, limits.connections_max
            )
            return False
        return True

    def forget(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
            self._per_ip[connection.peer_host] -= 1
            if not self._per_ip[connection.peer_host]:
                del self._per_ip[connection.peer_host]

    def complain(self, host: str, error: InvalidFrame) -> None:
        """Say in the log what a peer sent that is no request."""
        self._strangers.complain(host, error, self.limits.request_max_bytes, monotonic())

    def _reap(self) -> None:
        now_s = monotonic()
        idle_max_s = self.limits.idle_max_ms / 1000
        deadline_s = self.limits.frame_deadline_ms / 1000
        memory_is_short = self.request_budget.someone_waits
        for connection in list(self.connections) if memory_is_short else self._some_connections():
            if connection.closed:
                continue
            quiet_s = now_s - connection.active_s
            if connection.frame_is_late(now_s, deadline_s):
                log.info("closing the connection from %s: a frame stayed unfinished", connection.peer_host)
                connection.abort()
            elif memory_is_short and connection.holds_up(now_s, STALLED_S):
                log.info(
                    "closing the connection from %s: it holds memory that others wait for "
                    "(queued.max.request.bytes)",
                    connection.peer_host,
                )
                connection.abort()
            elif quiet_s > idle_max_s and connection.idle:
                log.debug("closing the connection from %s: connections.max.idle.ms", connection.peer_host)
                connection.abort()
            elif quiet_s > QUIET_S:
                connection.release_memory()
        self._reaper = self.loop.call_later(REAP_INTERVAL_S, self._reap)

    def _some_connections(self) -> list[Connection]:
        """The next ones in turn: with 10,000 of them each is looked at every ten intervals."""
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
                "Closed %d connections that did not take their answers: more than twice "
                "kafka.compat.queued.max.response.bytes=%d was waiting to be sent",
                cut_off,
                budget.limit_bytes,
            )
        if budget.full:
            self._relieve_soon()
