"""Sockets of the simulated network, with what asyncio and the broker ask of sockets."""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Iterable
from contextvars import Context
from typing import Any

from kafka_compat.testing.simulation.network import WINDOW_BYTES, Address, Connection, Network, Socket
from kafka_compat.testing.simulation.nodes import CURRENT, Node

_NOWHERE = ("0.0.0.0", 0)


class SimulatedSocket:
    """A stream of IPv4. It never blocks: what would is an error of the program's."""

    def __init__(
        self, network: Network, family: int = socket.AF_INET, type: int = -1, proto: int = 0
    ) -> None:
        self.family = socket.AF_INET
        self.type = socket.SOCK_STREAM
        self.proto = socket.IPPROTO_TCP
        self.is_closed = False
        self._network = network
        self._node: Node | None = CURRENT.get(None)
        if self._node is not None:
            self._node.sockets[self] = None
        self._descriptor = network.readiness.open(self)
        self._local: Address = _NOWHERE
        self._peer: Address | None = None
        self._blocks = True
        self._connection: Connection | None = None
        self._listening: SimulatedSocket | None = None
        """Where it is to be accepted."""
        self._waiting: deque[SimulatedSocket] | None = None
        """Of one that listens: who was not accepted yet."""
        self._unread = bytearray()
        self._ended = False
        self._sends_no_more = False
        self._error = 0

    # --- what the network says

    @property
    def node_name(self) -> str:
        """Whose it is."""
        return "main" if self._node is None else self._node.name

    @property
    def is_writable(self) -> bool:
        """Whether `send` would take something, or tell of an error."""
        if self._error or self._connection is None:
            return bool(self._error)
        return self._connection.unread[self._connection.other(self)] < WINDOW_BYTES

    def new_for(self, client: Socket) -> Socket:
        """The socket of this listener's process for a client; once connected, it waits to be accepted."""
        context = Context() if self._node is None else self._node.context()
        made = context.run(SimulatedSocket, self._network)
        made._listening = self
        return made

    def connected(self, connection: Connection, peer: Address) -> None:
        self._connection = connection
        self._peer = peer
        if self._listening is not None:
            self._local = self._listening._local
            self._listening._enqueue(self)
        elif self._local == _NOWHERE:
            self._local = (self._host(), self._network.free_port())

    def refused(self) -> None:
        self._error = errno.ECONNREFUSED

    def _enqueue(self, accepted: SimulatedSocket) -> None:
        assert self._waiting is not None
        self._waiting.append(accepted)
        self._tell_readable()

    def received(self, data: bytes) -> None:
        if data:
            self._unread += data
        else:
            self._ended = True
        self._tell_readable()

    def broken(self) -> None:
        """The connection is gone."""
        if not self.is_closed:
            self._unread.clear()
            self._error = errno.ECONNRESET
            self._tell_readable()

    def reset(self) -> None:
        """Its process was killed."""
        for waiting in self._waiting or ():
            waiting.reset()
        if self._connection is not None:
            self._connection.drop()
        # Nobody is left to close the transport that had this descriptor.
        self._network.loop.forget_transport(self._descriptor)
        self._close()

    def _tell_readable(self) -> None:
        is_so = bool(self._unread or self._ended or self._error or self._waiting)
        self._network.readiness.readable(self._descriptor, is_so)

    def _host(self) -> str:
        return "127.0.0.1" if self._node is None else self._node.host

    # --- what programs ask

    def fileno(self) -> int:
        return -1 if self.is_closed else self._descriptor

    def setblocking(self, flag: bool) -> None:
        self._blocks = flag

    def settimeout(self, timeout: float | None) -> None:
        self._blocks = timeout != 0

    def gettimeout(self) -> float | None:
        return None if self._blocks else 0.0

    def setsockopt(self, *_: Any) -> None:
        """None of them makes a difference here."""

    def getsockopt(self, level: int, option: int, *_: Any) -> int:
        if (level, option) != (socket.SOL_SOCKET, socket.SO_ERROR):
            return 0
        error, self._error = self._error, 0
        return error

    def getsockname(self) -> Address:
        return self._local

    def getpeername(self) -> Address:
        if self._peer is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._peer

    def bind(self, address: Address) -> None:
        host, port = address[0], address[1]
        self._local = (host, port or self._network.free_port())

    def listen(self, backlog: int = 0) -> None:
        if self._waiting is None:
            self._network.listen(self, self._local)
            self._waiting = deque()

    def accept(self) -> tuple[SimulatedSocket, Address]:
        self._check()
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        accepted = self._waiting.popleft()
        self._tell_readable()
        return accepted, accepted.getpeername()

    def connect(self, address: Address) -> None:
        self._check()
        self._network.connect(self, (address[0], address[1]))
        raise BlockingIOError(errno.EINPROGRESS, os.strerror(errno.EINPROGRESS))

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        self._check()
        self._raise_error()
        if self._connection is None or self._sends_no_more:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return self._connection.send(self, bytes(data))

    def sendmsg(self, buffers: Iterable[bytes | bytearray | memoryview]) -> int:
        return self.send(b"".join(buffers))

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._check()
        self._raise_error()
        if not self._unread:
            if self._ended:
                return b""
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        data = bytes(self._unread[:size])
        del self._unread[:size]
        if self._connection is not None:
            self._connection.unread[self] -= len(data)
        self._tell_readable()
        return data

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer)
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        if how != socket.SHUT_RD and self._connection is not None and not self._sends_no_more:
            self._sends_no_more = True
            self._connection.end(self)

    def close(self) -> None:
        if not self.is_closed:
            self.shutdown(socket.SHUT_RDWR)
            self._close()

    def _close(self) -> None:
        self.is_closed = True
        if self._waiting is not None:
            self._network.listen_no_more(self._local)
        self._network.readiness.close_descriptor(self._descriptor)
        if self._node is not None:
            self._node.sockets.pop(self, None)
        if self._connection is not None:
            self._connection.closed()

    def __enter__(self) -> SimulatedSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_error(self) -> None:
        if self._error:
            raise OSError(self._error, os.strerror(self._error))

    def _check(self) -> None:
        if self.is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self._blocks and self._waiting is None:
            raise RuntimeError("a simulation has no sockets that block: they would stop its time")
