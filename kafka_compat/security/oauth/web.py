"""What is asked of an issuer of tokens, or of another service, over HTTP: in a thread and with an end to it.

Only http and https, and a redirect only within the scheme, as in Java. However slowly the other side sends,
an exchange ends after `TIMEOUT_S`, or as soon as was asked; its answer has `ANSWER_BYTES_MAX` at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from kafka_compat.security.key_stores import StoreError, load_trust_store
from kafka_compat.security.tls_settings import Secret, TrustStoreSettings
from kafka_compat.security.waiting import in_thread

TIMEOUT_S: Final = 20.0
ANSWER_BYTES_MAX: Final = 1 << 20
_REDIRECTS_MAX: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)


class Unreachable(Exception):
    """No answer, or not one of use. `status` is HTTP's, if there was one."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class Place(NamedTuple):
    """Where to ask, and how to know that it is the right one (None: plain HTTP)."""

    url: str
    tls: ssl.SSLContext | None


def place(url: str, options: Mapping[str, str]) -> Place:
    """`options` are those of a JAAS configuration, whose ssl.truststore.* count for https. ValueError."""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https"):
        raise ValueError('only "http" and "https" are possible')
    if not parts.hostname or (parts.port is not None and not 0 < parts.port < 65536):
        raise ValueError("there is no host in it, or no good port")
    if any(character <= " " or character == "\x7f" for character in url):
        raise ValueError("there are blanks in it")
    return Place(url, _tls(options) if parts.scheme.lower() == "https" else None)


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    location, certificates = (
        options.get("ssl.truststore.location"),
        options.get("ssl.truststore.certificates"),
    )
    if location is None and certificates is None:
        return ssl.create_default_context()
    password = options.get("ssl.truststore.password")
    store = TrustStoreSettings(
        options.get("ssl.truststore.type", "JKS"),
        location,
        Secret(password) if password else None,
        certificates,
    )
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        trusted = load_trust_store(store)
    except StoreError as error:
        raise ValueError(str(error)) from error
    return ssl.create_default_context(cadata=b"".join(one.public_bytes(Encoding.DER) for one in trusted))


async def ask(
    where: Place,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """What a GET brings, or with a body a POST. Raises Unreachable."""
    asked = _Exchange(where, body, headers or {}, timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            return await in_thread(asked.run)
    except TimeoutError:
        raise Unreachable(f"no whole answer within {timeout_s:.0f} s") from None
    finally:
        asked.abort()


class _Exchange:
    """One question; `abort`, from another thread, ends it."""

    def __init__(
        self, where: Place, body: bytes | None, headers: Mapping[str, str], timeout_s: float
    ) -> None:
        self._timeout_s = timeout_s
        self._where = where
        self._body = body
        self._headers = {"Accept": "application/json", "Cache-Control": "no-cache", **headers}
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._aborted = False

    def abort(self) -> None:
        self._aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> bytes:
        """Raises Unreachable."""
        url = self._where.url
        for _ in range(_REDIRECTS_MAX + 1):
            try:
                answer = self._ask(url)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Unreachable(f"{type(error).__name__}: {error}") from error
            if isinstance(answer, bytes):
                return answer
            url = answer
        raise Unreachable("too many redirects")

    def _ask(self, url: str) -> bytes | str:
        """The answer, or whereto it leads."""
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
            connection.request("GET" if self._body is None else "POST", path, self._body, self._headers)
            response = connection.getresponse()
            if response.status in _REDIRECTS and self._body is None:
                return _followed(url, response.getheader("Location") or "")
            content = response.read(ANSWER_BYTES_MAX + 1)
        finally:
            self._socket = None
            connection.close()
        if len(content) > ANSWER_BYTES_MAX:
            raise Unreachable(f"the answer has more than {ANSWER_BYTES_MAX:,} bytes")
        if response.status not in (200, 201):
            said = content[:200].decode(errors="replace")
            raise Unreachable(f"HTTP {response.status}: {said!r}", response.status)
        return content


def _followed(url: str, location: str) -> str:
    target = urljoin(url, location)
    parts = urlsplit(target)
    if not location or parts.scheme != urlsplit(url).scheme or not parts.hostname:
        raise Unreachable(f"it leads to another scheme: {target[:200]!r}")
    return target
