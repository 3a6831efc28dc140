"""HTTP client for OAuth token issuers, schema registries, metrics receivers and the control API.

Rules
1. Only http and https are supported. As in Java, only GET follows redirects, and only to the same scheme.
2. An exchange is aborted when its caller is canceled, and at its timeout even if the server is sending data.
3. A response may have at most `RESPONSE_BYTES_MAX` bytes, unless the caller trusts the server.

The client uses http.client in a thread rather than aiohttp's client (docs/design/decisions/0022): brokers
without an HTTP listener need it too, tests call it without an event loop, and TLS handshakes and name lookups
do not block the event loop.
"""

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Self
from urllib.parse import urljoin, urlsplit

from kafka_compat.daemon_thread import in_daemon_thread

TIMEOUT_S: Final = 20.0
RESPONSE_BYTES_MAX: Final = 1 << 20
_REDIRECTS_MAX: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)


class Unreachable(ConnectionError):
    """Raised if the server returns no usable response. `status` is the HTTP status, if there was one."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class Place(NamedTuple):
    """A server and path for requests, and the TLS context to authenticate the server (None: plain HTTP)."""

    url: str
    tls: ssl.SSLContext | None

    def below(self, path: str) -> Self:
        """Return this place with `path` appended to its URL."""
        return self._replace(url=self.url.rstrip("/") + path)


class Response(NamedTuple):
    status: int
    body: bytes


def place(url: str, tls: Callable[[], ssl.SSLContext] = ssl.create_default_context) -> Place:
    """Parse a URL; `tls` creates the context for https. Raises ValueError if the URL is invalid."""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https"):
        raise ValueError('only "http" and "https" are supported')
    if not parts.hostname or (parts.port is not None and not 0 < parts.port < 65536):
        raise ValueError("the host is missing, or the port is invalid")
    if any(character <= " " or character == "\x7f" for character in url):
        raise ValueError("it contains spaces")
    return Place(url, tls() if parts.scheme.lower() == "https" else None)


async def ask(
    where: Place,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """Send a GET request, or a POST request if there is a body, and return the body of the response. Raises
    Unreachable for connection errors, timeouts, and any status except 200 and 201.
    """
    exchange = _Exchange(where, "GET" if body is None else "POST", body, headers or {}, timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            response = await in_daemon_thread(exchange.run)
    except TimeoutError:
        raise Unreachable(f"no complete response within {timeout_s:.0f} s") from None
    finally:
        exchange.abort()
    if response.status not in (200, 201):
        said = response.body[:200].decode(errors="replace")
        raise Unreachable(f"HTTP {response.status}: {said!r}", response.status)
    return response.body


def request(
    where: Place, method: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float
) -> Response:
    """Send a blocking request to a trusted server, and return its response. Raises Unreachable on failure."""
    return _Exchange(where, method, body, headers, timeout_s, bytes_max=None).run()


class _Exchange:
    """A request and its redirects. Other threads can cancel them with `abort`."""

    def __init__(
        self,
        where: Place,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout_s: float,
        bytes_max: int | None = RESPONSE_BYTES_MAX,
    ) -> None:
        self._where = where
        self._method = method
        self._body = body
        self._headers = {"Accept": "application/json", "Cache-Control": "no-cache", **headers}
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max
        self._socket: socket.socket | None = None
        self._aborted = False

    def abort(self) -> None:
        self._aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> Response:
        """Return the final response. Raises Unreachable if there is none."""
        url = self._where.url
        for _ in range(_REDIRECTS_MAX + 1):
            try:
                found = self._send(url)
            except Unreachable:
                raise
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Unreachable(f"{type(error).__name__}: {error}") from error
            if isinstance(found, Response):
                return found
            url = found
        raise Unreachable("too many redirects")

    def _send(self, url: str) -> Response | str:
        """Return the response, or the URL to which it redirects."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        tls = self._where.tls
        connection = (
            http.client.HTTPConnection(parts.hostname, parts.port, timeout=self._timeout_s)
            if tls is None
            else http.client.HTTPSConnection(parts.hostname, parts.port, timeout=self._timeout_s, context=tls)
        )
        try:
            connection.connect()
            self._socket = connection.sock
            if self._aborted:
                raise Unreachable("ended")
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(self._method, path, self._body, self._headers)
            response = connection.getresponse()
            if response.status in _REDIRECTS and self._method == "GET":
                return _followed(url, response.getheader("Location") or "")
            content = response.read(None if self._bytes_max is None else self._bytes_max + 1)
        finally:
            self._socket = None
            connection.close()
        if self._bytes_max is not None and len(content) > self._bytes_max:
            raise Unreachable(f"the response has more than {self._bytes_max:,} bytes")
        return Response(response.status, content)


def _followed(url: str, location: str) -> str:
    target = urljoin(url, location)
    parts = urlsplit(target)
    if not location or parts.scheme != urlsplit(url).scheme or not parts.hostname:
        raise Unreachable(f"it redirects to another scheme: {target[:200]!r}")
    return target
