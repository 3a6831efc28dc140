"""Interfaces through which a connection uses its server and its listener's authentication."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from kafka_compat.network.admission import Limits
    from kafka_compat.network.budget import AnswerBudget, RequestBudget
    from kafka_compat.network.framing import InvalidFrame
    from kafka_compat.network.tls import TlsSocket
    from kafka_compat.network.turns import Turns
    from kafka_compat.security.sasl.exchange import Exchange

Connection: TypeAlias = Any
"""A network.connection.Connection, which stands on this."""


class Host(Protocol):
    """What a connection needs of its server."""

    loop: asyncio.AbstractEventLoop
    limits: Limits
    scratch: memoryview
    use_sendfile: bool
    turns: Turns
    request_budget: RequestBudget
    answer_budget: AnswerBudget
    dispatch: Callable[[Connection, memoryview], bool]

    def complain(self, host: str, error: InvalidFrame) -> None:
        """Say in the log what a peer sent that is no request."""

    def refused(self, connection: Connection, reason: str) -> None:
        """Say in the log why a client was not let in."""

    def note_refusal(self, host: str, reason: str) -> None:
        """Keep for those who look why somebody at this address was refused something."""

    def forget(self, connection: Connection) -> None: ...


class Entrance(Protocol):
    """What a listener asks of its clients before they are served."""

    def enter(self, connection: Connection, accepted: socket.socket) -> TlsSocket | None:
        """A client has come: what its connection is to have in the place of its socket, if anything."""

    def passed(self, connection: Connection, exchange: Exchange) -> None:
        """A client has proved by SASL who it is."""
