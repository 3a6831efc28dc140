"""Network of a simulation: listeners, connections, and delays of data.

Rules
1. Data arrives in order, each chunk after a delay chosen by the seed, and some chunks are split in two.
2. If a receiver does not read, its sender waits once WINDOW_BYTES are in transit or unread.
3. A dropped connection ends for both sides at once; data in transit is lost.
4. A connection that loses a response is dropped when the listener sends data next.
"""

from __future__ import annotations

import errno
import os
import random
import socket
from collections import deque
from collections.abc import Iterable
from contextvars import Context
from typing import Any, Protocol

from kafka_compat.testing.simulation.journal import Journal
from kafka_compat.testing.simulation.nodes import CURRENT, Node
from kafka_compat.testing.simulation.readiness import Readiness

WINDOW_BYTES = 256 * 1024
_SPLIT_CHANCE = 0.05
_APART_S = 1e-7
_FIRST_PORT = 40_000
_ANY = ("", "0.0.0.0", "::")
_NOBODYS = Context()

Address = tuple[str, int]


class Loop(Protocol):
    """Interface of the simulated event loop."""

    journal: Journal

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> object: ...

    def forget_transport(self, descriptor: int) -> None: ...


class Network:
    """Network that follows the rules of this module. `delay_s` is the minimum and the maximum delay."""

    def __init__(self, loop: Loop, readiness: Readiness, chance: random.Random) -> None:
        self.loop = loop
        self.readiness = readiness
        self.delay_s = (0.0001, 0.002)
        self.connections: dict[Connection, None] = {}
        self.names: dict[str, str] = {"localhost": "127.0.0.1"}
        """Maps host names to addresses."""
        self._chance = chance
        self._listening: dict[Address, SimulatedSocket] = {}
        self._next_port = _FIRST_PORT
        self._connection_count = 0

    def delay(self) -> float:
        """Return a random delay for one chunk of data, in seconds."""
        return self._chance.uniform(*self.delay_s)

    def split(self, size: int) -> int:
        """Return the size of the first chunk of `size` bytes. Most data is sent as one chunk."""
        if size > 1 and self._chance.random() < _SPLIT_CHANCE:
            return self._chance.randrange(1, size)
        return size

    def later(self, when_s: float, what: Any, *arguments: Any) -> None:
        """Schedule a call that does not belong to a process."""
        self.loop.call_at(when_s, what, *arguments, context=_NOBODYS)

    def free_port(self) -> int:
        """Return an unused port."""
        self._next_port += 1
        return self._next_port

    # --- listeners

    def listen(self, listening: SimulatedSocket, address: Address) -> None:
        """Start listening. Raises OSError if the address is in use."""
        if address in self._listening:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._listening[address] = listening

    def listen_no_more(self, address: Address) -> None:
        """Stop listening, and free the address."""
        self._listening.pop(address, None)

    def listener_at(self, address: Address) -> SimulatedSocket | None:
        """Return the socket that listens on an address (or on all addresses), or None if there is none."""
        for host in (address[0], *_ANY):
            found = self._listening.get((host, address[1]))
            if found is not None:
                return found
        return None

    def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        """Resolve a host as socket.getaddrinfo does, for IPv4 only."""
        name = host.decode() if isinstance(host, bytes) else host or "0.0.0.0"
        found = name if name.replace(".", "").isdigit() else self.names.get(name)
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {name}")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (found, int(port or 0)))]

    # --- connections

    def connect(self, client: SimulatedSocket, address: Address) -> None:
        """Start connecting to an address. After a delay, the connection is established or refused."""
        self.later(self.loop.time() + self.delay(), self._arrive, client, address)

    def lose_no_answers(self) -> None:
        """Disable the loss of responses (rule 4) for all connections."""
        for connection in self.connections:
            connection.lose_answer(False)

    def _arrive(self, client: SimulatedSocket, address: Address) -> None:
        if client.is_closed:
            return
        listening = self.listener_at(address)
        if listening is None:
            client.refused()
            return
        self._connection_count += 1
        name = f"{client.node_name} #{self._connection_count}"
        server = listening.new_socket()
        connection = Connection(self, name, listening.node_name, client, server)
        self.connections[connection] = None
        self.loop.journal.note(f"{connection.name}: connected")
        client.connected(connection, address)
        server.connected(connection, client.getsockname())


class Connection:
    """A connection between two sockets."""

    def __init__(
        self,
        network: Network,
        client_name: str,
        server_name: str,
        client: SimulatedSocket,
        server: SimulatedSocket,
    ) -> None:
        self._network = network
        self.name = f"{client_name} -> {server_name}"
        self._back = f"{server_name} -> {client_name}"
        self._client, self._server = client, server
        self._last_s = {client: 0.0, server: 0.0}
        self.unread = {client: 0, server: 0}
        """Number of bytes in transit to each socket, or not yet read from it."""
        self._loses_answer = False
        self.is_open = True

    def other(self, one: SimulatedSocket) -> SimulatedSocket:
        """Return the other socket of the connection."""
        return self._server if one is self._client else self._client

    def send(self, sender: SimulatedSocket, data: bytes) -> int:
        """Send data, and return the number of accepted bytes. Raises BlockingIOError if none are accepted."""
        receiver = self.other(sender)
        if self._loses_answer and sender is self._server:
            self._network.loop.journal.note(f"{self.name}: its answer is lost")
            self.drop()
            return len(data)
        size = min(len(data), WINDOW_BYTES - self.unread[receiver])
        if size <= 0:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        self.unread[receiver] += size
        first = self._network.split(size)
        for piece in (data[:first], data[first:size]):
            if piece:
                self._after_delay(receiver, self._deliver, receiver, piece)
        return size

    def _after_delay(self, receiver: SimulatedSocket, what: Any, *arguments: Any) -> None:
        network = self._network
        when_s = max(network.loop.time() + network.delay(), self._last_s[receiver] + _APART_S)
        self._last_s[receiver] = when_s
        network.later(when_s, what, *arguments)

    def _deliver(self, receiver: SimulatedSocket, data: bytes) -> None:
        if self.is_open and not receiver.is_closed:
            journal = self._network.loop.journal
            if receiver is self._server:
                journal.note_data(self.name, data, is_request=True)
            else:
                journal.note_data(self._back, data, is_request=False)
            receiver.received(data)

    def end(self, sender: SimulatedSocket) -> None:
        """Signal the end of the data from `sender` to the other socket."""
        self._after_delay(self.other(sender), self._deliver_end, self.other(sender))

    def _deliver_end(self, receiver: SimulatedSocket) -> None:
        if self.is_open and not receiver.is_closed:
            receiver.received(b"")

    def closed(self) -> None:
        """Forget the connection if both sockets are closed."""
        if self._client.is_closed and self._server.is_closed:
            self.is_open = False
            self._network.connections.pop(self, None)

    def lose_answer(self, does: bool = True) -> None:
        """Enable or disable the loss of the next response (rule 4)."""
        self._loses_answer = does

    def drop(self) -> None:
        """Drop the connection and the data in transit (rule 3)."""
        if self.is_open:
            self.is_open = False
            self._network.loop.journal.note(f"{self.name}: dropped")
            self._network.connections.pop(self, None)
            self._client.broken()
            self._server.broken()


_NOWHERE = ("0.0.0.0", 0)


class SimulatedSocket:
    """Simulated IPv4 stream socket. Blocking calls raise RuntimeError."""

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
        """The listener that will accept the connection."""
        self._waiting: deque[SimulatedSocket] | None = None
        """A listener's connections that have not been accepted yet, or None for other sockets."""
        self._unread = bytearray()
        self._ended = False
        self._sends_no_more = False
        self._error = 0

    # --- interface for the network

    @property
    def node_name(self) -> str:
        """Name of the process that owns the socket."""
        return "main" if self._node is None else self._node.name

    @property
    def is_writable(self) -> bool:
        """Whether `send` would accept data, or raise an error."""
        if self._error or self._connection is None:
            return bool(self._error)
        return self._connection.unread[self._connection.other(self)] < WINDOW_BYTES

    def new_socket(self) -> SimulatedSocket:
        """Create the server's socket for a new connection. Once connected, it waits to be accepted."""
        context = Context() if self._node is None else self._node.context()
        accepted = context.run(SimulatedSocket, self._network)
        accepted._listening = self
        return accepted

    def connected(self, connection: Connection, peer: Address) -> None:
        self._connection = connection
        self._peer = peer
        if self._listening is not None:
            self._local = self._listening._local
            self._listening._enqueue(self)
        elif self._local == _NOWHERE:
            self._local = ("127.0.0.1" if self._node is None else self._node.host, self._network.free_port())

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
        """Record that the connection is lost."""
        if not self.is_closed:
            self._unread.clear()
            self._error = errno.ECONNRESET
            self._tell_readable()

    def reset(self) -> None:
        """Reset the connection of a killed process."""
        for waiting in self._waiting or ():
            waiting.reset()
        if self._connection is not None:
            self._connection.drop()
        # Forget the transport with this descriptor, because the killed process cannot close it.
        self._network.loop.forget_transport(self._descriptor)
        self._close()

    def _tell_readable(self) -> None:
        is_so = bool(self._unread or self._ended or self._error or self._waiting)
        self._network.readiness.readable(self._descriptor, is_so)

    # --- socket interface for programs

    def fileno(self) -> int:
        return -1 if self.is_closed else self._descriptor

    def setblocking(self, flag: bool) -> None:
        self._blocks = flag

    def settimeout(self, timeout: float | None) -> None:
        self._blocks = timeout != 0

    def gettimeout(self) -> float | None:
        return None if self._blocks else 0.0

    def setsockopt(self, *_: Any) -> None:
        """Do nothing, because socket options have no effect in a simulation."""

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
            raise RuntimeError("a simulation has no blocking sockets: they would stop its time")
