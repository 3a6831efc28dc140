"""Who may ask over HTTP. No I/O.

What the listener serves can change everything, so it has to be meant: a page in somebody's browser, on the
same machine or led there by a name of its own that means 127.0.0.1, must not be able to.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class Refusal(NamedTuple):
    """HTTP's status and a text that says what would be right."""

    status: int
    text: str


class Guard:
    """The rules of one listener."""

    def __init__(self, host: str, token: str | None) -> None:
        """At `host`; with a `token` whoever asks has to have it, and may come from anywhere."""
        self._host = host
        self._token = token

    def refusal(self, headers: Mapping[str, str], *, for_anybody: bool = False) -> Refusal | None:
        """Why a request with these headers is not for us; None where it is. `for_anybody`: what it asks for
        needs no token.
        """
        if self._token is not None:
            if for_anybody:
                return None
            scheme, _, given = headers.get("Authorization", "").partition(" ")
            if scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), self._token.encode()):
                return None
            return Refusal(401, "send the header `Authorization: Bearer` with kafka.compat.http.token")
        if "Origin" in headers:
            return Refusal(403, "pages of other sites may not ask: set kafka.compat.http.token, and send it")
        host = _host(headers.get("Host", ""))
        if host is None or not (host == self._host or is_loopback(host)):
            return Refusal(
                403,
                f"the Host {host} is no name of this listener: use 127.0.0.1, or set kafka.compat.http.token",
            )
        return None


def _host(header: str) -> str | None:
    """Without its port."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether nobody on another machine can mean this one by it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
