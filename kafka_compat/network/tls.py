"""TLS over a connected socket, with the interface of a plain socket.

Rules
1. OpenSSL works on two memory buffers, never on the socket: a single system call moves all available bytes,
   while `ssl.SSLSocket` needs two for each record of 16 KiB.
2. The handshake is driven by reads: `recv_into` returns no data until it is complete.
3. Encrypted bytes are sent before any other bytes are encrypted. `send` reports bytes as sent when all of
   their ciphertext has been passed to the kernel. Until then it raises BlockingIOError, and must be called
   again with the same bytes.
4. A peer that requests key updates without reading is disconnected at UNSENT_BYTES_MAX unsent bytes.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, cast

SCRATCH_BYTES: Final = 256 * 1024
"""Size of the buffer for received bytes, which all connections share."""
CHUNK_BYTES: Final = 64 * 1024
"""Number of bytes encrypted at a time: four records."""
UNSENT_BYTES_MAX: Final = 64 * 1024


class Wire(Protocol):
    """A socket with or without TLS, as used by a connection. Its methods raise BlockingIOError if the caller
    must wait, and OSError on failure.
    """

    def recv(self, size: int, /) -> bytes: ...

    def recv_into(self, room: memoryview, /) -> int: ...

    def send(self, data: bytes | bytearray | memoryview, /) -> int: ...

    def fileno(self) -> int: ...

    def setsockopt(self, level: int, name: int, value: int, /) -> None: ...

    def close(self) -> None: ...


class TlsSocket:
    """The server side of one TLS connection."""

    def __init__(
        self,
        connected: socket.socket,
        context: ssl.SSLContext,
        scratch: memoryview,
        on_open: Callable[[TlsSocket], None],
        on_refusal: Callable[[str], None],
    ) -> None:
        """All connections share `scratch`. `on_open` is called after the handshake, and `on_refusal` with the
        reason if the handshake fails.
        """
        self.has_more = False
        """Whether `recv_into` may return more data without new bytes from the peer."""
        self.is_open = False
        self._socket = connected
        self._scratch = scratch
        self._on_open = on_open
        self._on_refusal = on_refusal
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._ended = False
        self._unsent = memoryview(b"")
        self._owed_bytes = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def setsockopt(self, level: int, name: int, value: int) -> None:
        self._socket.setsockopt(level, name, value)

    def peer_certificate(self) -> bytes | None:
        """Return the peer's verified certificate (DER), or None if the peer sent none."""
        return self.session.getpeercert(binary_form=True)

    def recv(self, size: int) -> bytes:
        """Receive at most `size` decrypted bytes, like socket.recv."""
        room = self._scratch[:size]
        count = self.recv_into(room)
        return bytes(room[:count])

    def recv_into(self, room: memoryview) -> int:
        """Receive decrypted bytes, like socket.recv_into. Return 0 at the end of the stream. `room` may be
        part of the shared buffer.
        """
        if self.has_more:
            count = self._read(room)
            if count or self._ended:
                return count
        if self._ended:
            return 0
        # Read at most len(room) bytes, or 4,096 if that is more. More bytes stay in the socket's buffer.
        received = self._socket.recv_into(self._scratch[: max(len(room), 4096)])
        if received:
            self._incoming.write(self._scratch[:received])
        else:
            self._incoming.write_eof()
        if not self.is_open:
            self._shake_hands()
        count = self._read(room)
        if self._outgoing.pending or self._unsent:
            # Send an alert, a session ticket, or a key update that the peer requested.
            self._flush()
            if len(self._unsent) + self._outgoing.pending > UNSENT_BYTES_MAX:
                raise ConnectionAbortedError("it does not read the responses that it requests")
        if not count and not self._ended:
            raise BlockingIOError
        return count

    def _shake_hands(self) -> None:
        try:
            self.session.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            raise BlockingIOError from None
        except ssl.SSLError as error:
            self._flush()
            self._on_refusal(reason_of(error))
            raise
        self.is_open = True
        self._flush()
        self._on_open(self)

    def _read(self, room: memoryview) -> int:
        size = len(room)
        filled = 0
        self.has_more = False
        try:
            while filled < size:
                count = cast(int, self.session.read(size - filled, room[filled:]))
                if not count:
                    self._end()
                    return filled
                filled += count
                if not self._incoming.pending and not self.session.pending():
                    return filled
            self.has_more = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._end()
        return filled

    def _end(self) -> None:
        self._ended = True
        # Report the end of the stream in the next read, because this read may return decrypted bytes.
        self.has_more = True

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Encrypt and send bytes. After BlockingIOError, retry with the same bytes (rule 3)."""
        if not self._flush():
            raise BlockingIOError
        if self._owed_bytes:
            owed_bytes, self._owed_bytes = self._owed_bytes, 0
            return owed_bytes
        view = memoryview(data)
        size = len(view)
        sent = 0
        while sent < size:
            count = self.session.write(view[sent : sent + CHUNK_BYTES])
            if not self._flush():
                self._owed_bytes = count
                if not sent:
                    raise BlockingIOError
                break
            sent += count
        return sent

    def _flush(self) -> bool:
        """Send encrypted bytes. Return whether all of them were sent."""
        while True:
            unsent = self._unsent
            if not unsent:
                if not self._outgoing.pending:
                    return True
                unsent = memoryview(self._outgoing.read())
            try:
                count = self._socket.send(unsent)
            except (BlockingIOError, InterruptedError):
                count = 0
            self._unsent = unsent[count:]
            if self._unsent:
                return False

    def close(self) -> None:
        """Close the socket, after sending close_notify if the socket accepts it at once."""
        if self.is_open and not self._unsent:
            with suppress(OSError, ValueError):
                self.session.unwrap()
            with suppress(OSError):
                self._flush()
        self._socket.close()
        # Break a reference cycle: the callbacks refer to the connection, which refers to this object.
        self._on_open = self._on_refusal = _ignore


def _ignore(_: object) -> None:
    """Do nothing. Replaces the callbacks of a closed socket."""


def reason_of(error: ssl.SSLError) -> str:
    """Return the reason for a failed handshake, in words for operators."""
    reason = error.reason or ""
    if reason in _REASONS:
        return _REASONS[reason]
    return str(error) or type(error).__name__


_CLIENT_DISTRUSTS: Final = (
    "the client does not trust this broker's certificate: configure its CA in the client "
    "(ssl.truststore.location, ssl.ca.location)"
)
_REASONS: Final = {
    "UNEXPECTED_EOF_WHILE_READING": (
        "the client closed the connection during the TLS handshake, as some clients do if they do not trust "
        "the certificate: configure its CA in the client (ssl.truststore.location, ssl.ca.location)"
    ),
    "HTTP_REQUEST": "this looks like an HTTP request, but the listener uses TLS: use a Kafka client",
    "WRONG_VERSION_NUMBER": (
        "this is not TLS, but the listener uses TLS: set security.protocol=SSL or SASL_SSL in the client"
    ),
    "UNSUPPORTED_PROTOCOL": "the client supports only TLS versions that are not in ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "the client supports none of ssl.cipher.suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "the client sent no certificate, but ssl.client.auth=required: configure a keystore in the client"
    ),
    "CERTIFICATE_VERIFY_FAILED": (
        "the client's certificate is not signed by a CA in ssl.truststore, or has expired"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": _CLIENT_DISTRUSTS,
    # The client trusts a CA that has the same name as the broker's CA, but a different key.
    "TLSV1_ALERT_DECRYPT_ERROR": _CLIENT_DISTRUSTS,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": (
        "the client rejects this broker's certificate: it does not trust the CA, or the certificate does "
        "not contain the name in advertised.listeners"
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client rejects this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this broker's certificate has expired: renew it",
}
