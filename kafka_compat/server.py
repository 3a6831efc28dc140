"""Listening sockets, the connections they accepted, and the limits that hold for them."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_compat.config import Listener
from kafka_compat.connection import Connection
from kafka_compat.framing import SCRATCH_BYTES

log = logging.getLogger(__name__)

REAP_INTERVAL_S = 1.0
QUIET_S = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server grants its clients.

    `frame_deadline_ms` bounds how long a frame may stay unfinished: a client that sends half a frame and
    waits would otherwise hold a buffer for the whole of connections.max.idle.ms.
    """

    request_max_bytes: int
    idle_max_ms: int
    connections_max: int
    connections_per_ip_max: int
    frame_deadline_ms: int
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)


class Server:
    """Accepts connections on every listener and hands their frames to `dispatch(connection, frame) -> keep
    open`.
    """

    def __init__(self, limits: Limits, dispatch: Callable[[Connection, memoryview], bool]) -> None:
        self.limits = limits
        self.dispatch = dispatch
        self.request_max_bytes = limits.request_max_bytes
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        # macOS has os.sendfile with other limits; reading and writing works everywhere.
        self.use_sendfile = sys.platform.startswith("linux")
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.bound: dict[str, tuple[str, int]] = {}
        self._per_ip: Counter[str] = Counter()
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._reaper: asyncio.TimerHandle | None = None

    def bind(self, listener: Listener) -> tuple[str, int]:
        """Claim the address without accepting yet. Raises OSError when it is taken or not ours."""
        family = socket.AF_INET6 if ":" in listener.host or not listener.host else socket.AF_INET
        if family == socket.AF_INET6 and not listener.host and not socket.has_dualstack_ipv6():
            family = socket.AF_INET
        address: tuple[str, int]
        if listener.host:
            found = socket.getaddrinfo(
                listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
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

    async def start(self) -> None:
        """Accept connections on everything that was bound."""
        for listener, listening in self._sockets:
            name = listener.name
            self._servers.append(
                await self.loop.create_server(lambda name=name: Connection(self, name), sock=listening)  # type: ignore[misc]
            )
        self._reaper = self.loop.call_later(REAP_INTERVAL_S, self._reap)

    def stop_accepting(self) -> None:
        for server in self._servers:
            server.close()
        for _, listening in self._sockets:
            listening.close()

    def stop(self) -> None:
        """Stop listening and close every connection."""
        if self._reaper is not None:
            self._reaper.cancel()
        self.stop_accepting()
        for connection in list(self.connections):
            connection.close()

    def admit(self, connection: Connection) -> bool:
        """Count a new connection; False where a limit says no."""
        limits = self.limits
        host = connection.peer_host
        self.connections.add(connection)
        self._per_ip[host] += 1
        per_ip_max = limits.connections_per_ip_overrides.get(host, limits.connections_per_ip_max)
        if self._per_ip[host] > per_ip_max:
            log.info("refusing a connection from %s: max.connections.per.ip=%d is reached", host, per_ip_max)
            return False
        if len(self.connections) > limits.connections_max:
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

    def _reap(self) -> None:
        now_s = self.loop.time()
        idle_max_s = self.limits.idle_max_ms / 1000
        deadline_s = self.limits.frame_deadline_ms / 1000
        for connection in list(self.connections):
            quiet_s = now_s - connection.last_active_s
            if connection.frame_started_s and now_s - connection.frame_started_s > deadline_s:
                log.info("closing the connection from %s: a frame stayed unfinished", connection.peer_host)
                connection.abort()
            elif quiet_s > idle_max_s and connection.idle:
                log.debug("closing the connection from %s: connections.max.idle.ms", connection.peer_host)
                connection.abort()
            elif quiet_s > QUIET_S:
                connection.release_memory()
        self._reaper = self.loop.call_later(REAP_INTERVAL_S, self._reap)
