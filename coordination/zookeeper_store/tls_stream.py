"""A TLS connection for a reader that waits by select(): what select() sees of it are records, not what they
hold.

One record may hold several answers, of which the reader takes one at a time: then there is something to read
though the socket is silent. Another holds nothing to read, such as a ticket of TLS 1.3: then the socket is
not silent, and who reads on waits for an answer that nobody sends.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

_READ_BYTES: Final = 65536

Select = Callable[..., Any]


class TlsStream:
    """What a socket is to its reader: non-blocking, by one thread."""

    def __init__(self, connection: ssl.SSLSocket, explain: Callable[[OSError], OSError]) -> None:
        """`explain` says what the reader gets for an error of the connection."""
        self._connection = connection
        self._explain = explain
        self._received = bytearray()
        self._failure: OSError | None = None
        self._ended = False

    def fileno(self) -> int:
        return self._connection.fileno()

    def setblocking(self, flag: bool) -> None:
        self._connection.setblocking(flag)

    def close(self) -> None:
        self._connection.close()

    def send(self, data: Any) -> int:
        """As a socket's; ssl.SSLWantReadError or SSLWantWriteError where that would raise BlockingIOError."""
        return self._connection.send(data)

    def pending(self) -> int:
        """How many bytes there are without another look at the socket."""
        return len(self._received)

    def recv(self, size: int) -> bytes:
        """At most so many bytes; none at the end. ssl.SSLWantReadError when there is nothing as yet."""
        if not self._received and not self.fill():
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "nothing to read")
        if self._received:
            taken = bytes(self._received[:size])
            del self._received[:size]
            return taken
        if self._failure is not None:
            raise self._failure
        return b""

    def fill(self) -> bool:
        """Take from the socket what is there; whether `recv` has something to say now."""
        while not self._ended:
            try:
                data = self._connection.recv(_READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as error:
                self._failure = self._explain(error)
                data = b""
            self._ended = not data
            self._received += data
        return bool(self._received) or self._ended


def select(
    plain: Select,
    reading: Sequence[Any],
    writing: Sequence[Any],
    failing: Sequence[Any],
    timeout: float | None,
) -> tuple[list[Any], list[Any], list[Any]]:
    """As select(), which `plain` is: of TlsStreams in `reading` those count that have something to read."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        waiting = [item for item in reading if isinstance(item, TlsStream) and item.pending()]
        left = 0.0 if waiting else None if deadline is None else max(0.0, deadline - time.monotonic())
        found, writable, failed = plain(reading, writing, failing, left)
        readable = waiting + [
            item for item in found if item not in waiting and (not isinstance(item, TlsStream) or item.fill())
        ]
        if readable or writable or failed or (left == 0.0 and not found):
            return readable, writable, failed
