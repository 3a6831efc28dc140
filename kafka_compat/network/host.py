"""Interfaces through which a connection uses its server and its listener's authentication."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from kafka_compat.network.admission import Limits
    from kafka_compat.network.budget import AnswerBudget, RequestBudget
    from kafka_compat.network.framing import Frame, InvalidFrame
    from kafka_compat.network.tls import TlsSocket
    from kafka_compat.network.turns import Turns
    from kafka_compat.security.sasl.exchange import Exchange

ReachedAt: TypeAlias = Callable[[str, str, str, int], tuple[str, int]]
"""A function of the listener's name, the client's address, and the host and port of the server's socket."""
Connection: TypeAlias = Any
"""A network.connection.Connection, which cannot be imported here because its module imports this one."""


class Host(Protocol):
    """The server, as used by its connections."""

    loop: asyncio.AbstractEventLoop
    limits: Limits
    use_sendfile: bool
    turns: Turns
    request_budget: RequestBudget
    answer_budget: AnswerBudget
    dispatch: Callable[[Connection, Frame], bool]
    reached_at: ReachedAt | None
    """Function that returns the address at which a client reached the server, if it may differ from the
    address of the connection's socket.
    """

    def complain(self, host: str, error: InvalidFrame) -> None:
        """Log an invalid frame that a client sent, and the protocol that its first bytes suggest."""

    def refused(self, connection: Connection, reason: str) -> None:
        """Log why a client was rejected."""

    def note_refusal(self, host: str, reason: str) -> None:
        """Record the rejection of an address and the reason, for the web console."""

    def forget(self, connection: Connection) -> None: ...


class Entrance(Protocol):
    """The authentication that a listener requires from its clients."""

    def enter(self, connection: Connection, accepted: socket.socket) -> TlsSocket | None:
        """Return the TLS socket that replaces the new connection's socket, or None if TLS is not used."""

    def passed(self, connection: Connection, exchange: Exchange) -> None:
        """Record that a client has authenticated with SASL."""
