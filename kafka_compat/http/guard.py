"""Authentication of HTTP requests, and protection against cross-site requests. No I/O.

The listener's routes can change all data. Web pages in a browser on the same machine must not be able to send
requests to the listener, not even from a host name that resolves to 127.0.0.1.
"""

import hmac
import ipaddress
import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

SESSIONS_MAX: Final = 64
IDLE_MAX_S: Final = 8 * 3600.0
_BYTES: Final = 32


class Sessions:
    """Sessions of browsers that have presented the listener's token, with random IDs in their cookies.
    Sessions are kept in memory: after a restart, users must log in again. `now_s` is a monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._used_s: dict[str, float] = {}
        """Maps each session ID to the time of its last use, the oldest first."""

    def open(self) -> str:
        """Create a session, and return its ID. If there are too many, end the least recently used session."""
        if len(self._used_s) >= SESSIONS_MAX:
            del self._used_s[next(iter(self._used_s))]
        session = os.urandom(_BYTES).hex()
        self._used_s[session] = self._now_s()
        return session

    def use(self, session: str) -> bool:
        """Return whether a session is valid. If so, renew it for IDLE_MAX_S."""
        used_s, now_s = self._used_s.pop(session, None), self._now_s()
        if used_s is None or now_s - used_s > IDLE_MAX_S:
            return False
        self._used_s[session] = now_s
        return True

    def end(self, session: str) -> None:
        """End a session."""
        self._used_s.pop(session, None)


class Refusal(NamedTuple):
    """The reason for rejecting a request: the HTTP status, and a message for the client."""

    status: int
    text: str


class Guard:
    """Access rules for an HTTP listener."""

    def __init__(self, host: str, token: str | None) -> None:
        """Create rules for `host`. If `token` is set, clients must send it, and may use any Host header."""
        self._host = host
        self._token = token

    def refusal(
        self,
        headers: Mapping[str, str],
        *,
        for_anybody: bool = False,
        for_browsers: bool = False,
        has_session: bool = False,
    ) -> Refusal | None:
        """Return the reason to reject a request with these headers, or None if the request is allowed.

        `for_anybody` means that the route does not require a token. `for_browsers` means that pages of this
        listener may request the route. `has_session` means that the browser has presented the token.
        """
        if for_browsers:
            if not _is_of_same_origin(headers):
                return Refusal(403, "cross-site requests are rejected")
        elif self._token is None and "Origin" in headers:
            return Refusal(403, "cross-site requests are rejected: set kafka.compat.http.token, and send it")
        if self._token is not None:
            if for_anybody or (for_browsers and has_session) or self._is_shown(headers):
                return None
            return Refusal(401, "send the header `Authorization: Bearer` with kafka.compat.http.token")
        host = _host(headers.get("Host", ""))
        if host is None or not (host == self._host or is_loopback(host)):
            return Refusal(
                403,
                f"the Host {host} does not match this listener: use 127.0.0.1, or set "
                "kafka.compat.http.token",
            )
        return None

    def _is_shown(self, headers: Mapping[str, str]) -> bool:
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(given)

    def is_token(self, given: str) -> bool:
        """Return whether `given` is the listener's token."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    @property
    def asks_for_token(self) -> bool:
        """Whether clients must present a token."""
        return self._token is not None


def _is_of_same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from a page of this listener, from a link, or not from a web page. Links
    are allowed, because they cannot change data.
    """
    origin = headers.get("Origin")
    if origin is not None and _place(origin) != headers.get("Host", ""):
        return False
    if headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none"):
        return True
    return origin is None and headers.get("Sec-Fetch-Mode") == "navigate"


def _place(origin: str) -> str | None:
    """Return an origin's host and port in the format of the Host header, or None if the origin is opaque."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def _host(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
