"""Senders of requests: network clients, the web console and tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kafka_compat.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kafka_compat.security.sasl.exchange import Exchange

UNKNOWN_SOFTWARE: Final = "unknown"


class Authentication(Protocol):
    """State of a client's SASL authentication on a listener that requires SASL."""

    @property
    def exchange(self) -> Exchange: ...

    def passed(self) -> None:
        """Complete the authentication, and process later requests as the authenticated principal."""

    def refused(self, reason: str, answer: Callable[[], None] | None = None) -> None:
        """Reject the client. `answer` sends the response, after a delay that slows down password guessing."""


class Line(Protocol):
    """Interface to a caller's connection for code outside the network layer."""

    def mute(self, for_s: float) -> None:
        """Delay the caller's later requests for `for_s` seconds, or until `unmute` is called."""

    def unmute(self) -> None:
        """Serve the delayed requests."""

    def abort(self) -> None:
        """Close the connection immediately."""


class Session:
    """State of a caller's connection that is kept when the principal or client ID changes."""

    __slots__ = (
        "_when_left",
        "authentication",
        "has_closed",
        "has_left",
        "is_in_process",
        "line",
        "sendfile_bytes_min",
        "software_client_id",
        "software_name",
        "software_version",
    )

    def __init__(self, line: Line | None = None) -> None:
        """`line` is None for a caller in this process."""
        self.line = line
        self.is_in_process = line is None
        self.authentication: Authentication | None = None
        """The SASL authentication of the client, or None if the listener does not use SASL."""
        self.has_left = False
        self.has_closed = False
        """Whether the caller closed the connection, or its process ended."""
        self.sendfile_bytes_min = sys.maxsize
        """Minimum size of file slices that are sent without being copied through this process."""
        self.software_client_id: str | None = None
        """Client ID of the request in which the client stated its software name and version."""
        self.software_name = UNKNOWN_SOFTWARE
        self.software_version = UNKNOWN_SOFTWARE
        self._when_left: dict[object, Callable[[], None]] | None = None

    def is_software(self, client_id: str | None, name: str, version: str) -> None:
        """Record the client's software name and version (KIP-511)."""
        self.software_client_id = client_id
        self.software_name = name
        self.software_version = version

    def when_left(self, purpose: object, call: Callable[[], None]) -> None:
        """Set a callback to run when the connection closes. It replaces any callback for the same purpose."""
        if self._when_left is None:
            self._when_left = {}
        self._when_left[purpose] = call

    def leave(self) -> None:
        """Mark the connection as closed, and call the `when_left` callbacks."""
        self.has_left = True
        self.line = None
        self.authentication = None
        left = self._when_left
        self._when_left = None
        for call in left.values() if left is not None else ():
            call()


class Caller:
    """The sender of a request. Immutable: a change of principal or client ID creates a new caller with the
    same session.
    """

    __slots__ = (
        "client_id",
        "host",
        "is_trusted",
        "listener_name",
        "local_host",
        "local_port",
        "port",
        "principal",
        "session",
    )

    def __init__(
        self,
        principal: Principal = ANONYMOUS,
        host: str = "",
        listener_name: str = "",
        client_id: str | None = None,
        *,
        port: int = 0,
        local_host: str | None = None,
        local_port: int = 0,
        session: Session | None = None,
        is_trusted: bool = False,
    ) -> None:
        self.principal = principal
        self.host = host
        self.listener_name = listener_name
        """Name of the connection's listener. Responses contain the brokers' addresses on this listener."""
        self.client_id = client_id
        self.port = port
        self.local_host = local_host
        """The address of this broker to which the client connected, or None for a caller in this process."""
        self.local_port = local_port
        self.is_trusted = is_trusted
        """Whether all operations are allowed without consulting the authorizer, as for the control API."""
        self.session = Session() if session is None else session

    @property
    def software_name(self) -> str:
        return self.session.software_name

    @property
    def software_version(self) -> str:
        return self.session.software_version

    def with_client_id(self, client_id: str | None) -> Caller:
        """Return a copy of this caller with a different client ID."""
        return self._other(self.principal, client_id)

    def with_principal(self, principal: Principal) -> Caller:
        """Return a copy of this caller with a different principal."""
        return self._other(principal, self.client_id)

    def _other(self, principal: Principal, client_id: str | None) -> Caller:
        return Caller(
            principal,
            self.host,
            self.listener_name,
            client_id,
            port=self.port,
            local_host=self.local_host,
            local_port=self.local_port,
            session=self.session,
            is_trusted=self.is_trusted,
        )
