"""The network of a simulation: who listens where, and how long data take.

Rules
1. Data arrive in their order, each piece after a delay that the seed decides, and some of them in two.
2. A receiver that takes nothing makes its sender wait once WINDOW_BYTES are on their way or unread.
3. A connection that is dropped ends for both sides at once; what was on its way is lost.
4. A connection that loses an answer is dropped in the place of the next data that a listener's side sends.
"""

from __future__ import annotations

import errno
import random
import socket
from contextvars import Context
from typing import Any, Protocol

from kafka_compat.testing.simulation.journal import Journal
from kafka_compat.testing.simulation.readiness import Readiness

WINDOW_BYTES = 256 * 1024
_SPLIT_CHANCE = 0.05
_APART_S = 1e-7
_FIRST_PORT = 40_000
_ANY = ("", "0.0.0.0", "::")
_NOBODYS = Context()

Address = tuple[str, int]


class Loop(Protocol):
    """The event loop."""

    journal: Journal

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> object: ...

    def forget_transport(self, descriptor: int) -> None: ...


class Socket(Protocol):
    """One end of a connection, or one that listens."""

    is_closed: bool

    @property
    def node_name(self) -> str:
        """Whose it is."""

    def getsockname(self) -> Address: ...

    def refused(self) -> None:
        """Nobody listens there."""

    def new_for(self, client: Socket) -> Socket:
        """The socket of this listener's process for a client; once connected, it waits to be accepted."""

    def connected(self, connection: Connection, peer: Address) -> None: ...

    def received(self, data: bytes) -> None:
        """No bytes: there will be no more."""

    def broken(self) -> None:
        """The connection is gone."""


class Network:
    """See the rules above. `delay_s` has the lowest and the highest delay."""

    def __init__(self, loop: Loop, readiness: Readiness, chance: random.Random) -> None:
        self.loop = loop
        self.readiness = readiness
        self.delay_s = (0.0001, 0.002)
        self.connections: dict[Connection, None] = {}
        self.names: dict[str, str] = {"localhost": "127.0.0.1"}
        """The addresses of hosts."""
        self._chance = chance
        self._listening: dict[Address, Socket] = {}
        self._next_port = _FIRST_PORT
        self._made = 0

    def delay(self) -> float:
        """Of one piece of data, in seconds."""
        return self._chance.uniform(*self.delay_s)

    def split(self, size: int) -> int:
        """How much of so many bytes comes first."""
        if size > 1 and self._chance.random() < _SPLIT_CHANCE:
            return self._chance.randrange(1, size)
        return size

    def later(self, when_s: float, what: Any, *arguments: Any) -> None:
        """Something that is of no process."""
        self.loop.call_at(when_s, what, *arguments, context=_NOBODYS)

    def free_port(self) -> int:
        """One that nobody had."""
        self._next_port += 1
        return self._next_port

    # --- who listens

    def listen(self, listening: Socket, address: Address) -> None:
        """Raises OSError where another one listens."""
        if address in self._listening:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._listening[address] = listening

    def listen_no_more(self, address: Address) -> None:
        """The address is free."""
        self._listening.pop(address, None)

    def listener_at(self, address: Address) -> Socket | None:
        """Who listens there, on that address or on all."""
        for host in (address[0], *_ANY):
            found = self._listening.get((host, address[1]))
            if found is not None:
                return found
        return None

    def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        """As socket.getaddrinfo; of IPv4 alone."""
        name = host.decode() if isinstance(host, bytes) else host or "0.0.0.0"
        found = name if name.replace(".", "").isdigit() else self.names.get(name)
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {name}")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (found, int(port or 0)))]

    # --- connections

    def connect(self, client: Socket, address: Address) -> None:
        """`client` hears of it later."""
        self.later(self.loop.time() + self.delay(), self._arrive, client, address)

    def lose_no_answers(self) -> None:
        """Rule 4 is off for all that there are."""
        for connection in self.connections:
            connection.lose_answer(False)

    def _arrive(self, client: Socket, address: Address) -> None:
        if client.is_closed:
            return
        listening = self.listener_at(address)
        if listening is None:
            client.refused()
            return
        self._made += 1
        name = f"{client.node_name} #{self._made}"
        server = listening.new_for(client)
        connection = Connection(self, name, listening.node_name, client, server)
        self.connections[connection] = None
        self.loop.journal.note(f"{connection.name}: connected")
        client.connected(connection, address)
        server.connected(connection, client.getsockname())


class Connection:
    """Two sockets."""

    def __init__(self, network: Network, client: str, server: str, near: Socket, far: Socket) -> None:
        self._network = network
        self.name = f"{client} -> {server}"
        self._back = f"{server} -> {client}"
        self._client, self._server = near, far
        self._last_s = {near: 0.0, far: 0.0}
        self.unread = {near: 0, far: 0}
        """Bytes on their way to each of the sockets, or not taken by it."""
        self._loses_answer = False
        self.is_open = True

    def other(self, one: Socket) -> Socket:
        """The other end."""
        return self._server if one is self._client else self._client

    def send(self, sender: Socket, data: bytes) -> int:
        """How many of the bytes are on their way now."""
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

    def _after_delay(self, receiver: Socket, what: Any, *arguments: Any) -> None:
        network = self._network
        when_s = max(network.loop.time() + network.delay(), self._last_s[receiver] + _APART_S)
        self._last_s[receiver] = when_s
        network.later(when_s, what, *arguments)

    def _deliver(self, receiver: Socket, data: bytes) -> None:
        if self.is_open and not receiver.is_closed:
            journal = self._network.loop.journal
            if receiver is self._server:
                journal.note_data(self.name, data, is_request=True)
            else:
                journal.note_data(self._back, data, is_request=False)
            receiver.received(data)

    def end(self, sender: Socket) -> None:
        """`sender` sends no more."""
        self._after_delay(self.other(sender), self._deliver_end, self.other(sender))

    def _deliver_end(self, receiver: Socket) -> None:
        if self.is_open and not receiver.is_closed:
            receiver.received(b"")

    def closed(self) -> None:
        """One of both is. Once both are, it is forgotten."""
        if self._client.is_closed and self._server.is_closed:
            self.is_open = False
            self._network.connections.pop(self, None)

    def lose_answer(self, does: bool = True) -> None:
        """Rule 4; or not."""
        self._loses_answer = does

    def drop(self) -> None:
        """Rule 3."""
        if self.is_open:
            self.is_open = False
            self._network.loop.journal.note(f"{self.name}: dropped")
            self._network.connections.pop(self, None)
            self._client.broken()
            self._server.broken()
