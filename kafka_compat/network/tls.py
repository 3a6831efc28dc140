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
        self._first_received = b""
        self._last_received = b""
        """The beginning of the first and of the last bytes received during the handshake."""
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
        try:
            received = self._socket.recv_into(self._scratch[: max(len(room), 4096)])
        except ConnectionResetError:
            if self._last_received and not self.is_open:
                self._on_refusal(CLOSED)
            raise
        if received:
            self._incoming.write(self._scratch[:received])
        else:
            self._incoming.write_eof()
        if not self.is_open:
            if received:
                self._last_received = bytes(self._scratch[: min(received, _REMEMBERED_BYTES)])
                self._first_received = self._first_received or self._last_received
            elif not self._last_received:
                return 0  # A port check: the peer has sent nothing.
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
            if not self._outgoing.pending and error.reason in _NOT_TLS:
                # OpenSSL sends no alert. Send the same alert as Java, because some clients then report that
                # the listener uses TLS.
                self._unsent = memoryview(_INTERNAL_ERROR_ALERT)
            self._flush()
            repeated = self._repeats_hello()
            self._on_refusal(self._rejected(error) if repeated else reason_of(error, self._last_received))
            raise
        self.is_open = True
        self._first_received = self._last_received = b""
        self._flush()
        self._on_open(self)

    def _repeats_hello(self) -> bool:
        """Return whether the client has sent its first message again. Java clients before 3.0 do so when they
        reject the certificate: they send a whole buffer, which begins or ends with the new message.
        """
        first, last = self._first_received, self._last_received
        return first is not last and first[_CHANGE_BYTES:_HELLO_BYTES] in last[: 2 * _HELLO_BYTES]

    def _rejected(self, error: ssl.SSLError) -> str:
        """Return the reason in the alert at the end of a client's buffer. TLS 1.3 encrypts the alert."""
        rest = self._last_received
        with suppress(OSError):
            for _ in range(_READS_MAX):
                count = self._socket.recv_into(self._scratch)
                if not count:
                    break
                rest = rest[-_ALERT_RECORD_BYTES:] + bytes(self._scratch[:count])
        end = rest[-_ALERT_RECORD_BYTES:]
        return _CLIENT_REJECTS if plain_alert(end) is None else reason_of(error, end)

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


def reason_of(error: ssl.SSLError, received: bytes = b"") -> str:
    """Return the reason for a failed handshake, in words for operators. `received` is what the client sent
    last: some clients send their alert in plain text, in a state in which OpenSSL does not accept that.
    """
    alert = None if error.reason in _ALERTS.values() else plain_alert(received)
    if alert is not None:
        reason = _ALERTS.get(alert, "")
        return _REASONS.get(reason) or f"the client ended the TLS handshake with alert {alert}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            _UNVERIFIED.get(error.verify_code)
            or f"the client's certificate is invalid: {error.verify_message}"
        )
    reason = error.reason or ""
    if reason in _REASONS:
        return _REASONS[reason]
    if "ALERT" in reason:
        return f"the client ended the TLS handshake: {reason.split('ALERT_')[-1].replace('_', ' ').lower()}"
    return str(error) or type(error).__name__


def plain_alert(received: bytes) -> int | None:
    """Return the code of the first alert in unencrypted TLS records, or None if there is none."""
    position = 0
    while position + _RECORD_HEADER_BYTES <= len(received) and received[position + 1] == _TLS_MAJOR:
        size = int.from_bytes(received[position + 3 : position + _RECORD_HEADER_BYTES], "big")
        content = received[position + _RECORD_HEADER_BYTES :][:size]
        if received[position] == _ALERT and len(content) == size == _ALERT_BYTES:
            return content[1]
        position += _RECORD_HEADER_BYTES + size
    return None


_REMEMBERED_BYTES: Final = 32 * 1024
"""More than the buffers of Java clients, which contain a TLS record of 16 KiB."""
_HELLO_BYTES: Final = 64
_CHANGE_BYTES: Final = 6
"""Size of the message ChangeCipherSpec, with which Java clients begin their reply in TLS 1.3."""
_READS_MAX: Final = 4
_ALERT_RECORD_BYTES: Final = 7
_RECORD_HEADER_BYTES: Final = 5
_TLS_MAJOR: Final = 3
_ALERT: Final = 21
_ALERT_BYTES: Final = 2
_INTERNAL_ERROR_ALERT: Final = bytes.fromhex("15030300020250")
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
CLOSED: Final = (
    "the client closed the connection during the TLS handshake, as some clients do if they do not trust "
    "the certificate: configure its CA in the client (ssl.truststore.location, ssl.ca.location)"
)
_CLIENT_DISTRUSTS: Final = (
    "the client does not trust this broker's certificate: configure its CA in the client "
    "(ssl.truststore.location, ssl.ca.location)"
)
_CLIENT_REJECTS: Final = (
    "the client rejects this broker's certificate: it does not trust the CA, or the certificate does "
    "not contain the name in advertised.listeners"
)
_CLIENT_SAYS_INVALID: Final = "the client rejects this broker's certificate"
_EXPIRED: Final = "this broker's certificate has expired: renew it"
ABOUT_THIS_CERTIFICATE: Final = frozenset(
    {CLOSED, _CLIENT_DISTRUSTS, _CLIENT_REJECTS, _CLIENT_SAYS_INVALID, _EXPIRED}
)
"""Reasons that may be due to an expired certificate of this broker. Clients do not always say so."""
_UNTRUSTED: Final = "the client's certificate is not signed by a CA in ssl.truststore"
_UNVERIFIED: Final = {
    7: "the signature of the client's certificate is invalid: its CA has the name, but not the key of the CA "
    "in ssl.truststore",
    9: "the client's certificate is not valid yet: check its dates and this machine's clock",
    10: "the client's certificate has expired: renew it",
    18: _UNTRUSTED,
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
    26: "the client's certificate is not for clients (its extended key usage lacks clientAuth)",
}
"""Reasons by OpenSSL's codes for the verification of certificates (X509_V_ERR_…)."""
_ALERTS: Final = {
    40: "SSLV3_ALERT_HANDSHAKE_FAILURE",
    42: "SSLV3_ALERT_BAD_CERTIFICATE",
    43: "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    44: "SSLV3_ALERT_CERTIFICATE_REVOKED",
    45: "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    46: "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    48: "TLSV1_ALERT_UNKNOWN_CA",
    51: "TLSV1_ALERT_DECRYPT_ERROR",
    70: "TLSV1_ALERT_PROTOCOL_VERSION",
    80: "TLSV1_ALERT_INTERNAL_ERROR",
}
"""OpenSSL's names of the alerts with which clients end handshakes (RFC 8446, 6.2)."""
_REASONS: Final = {
    "UNEXPECTED_EOF_WHILE_READING": CLOSED,
    "HTTP_REQUEST": "this looks like an HTTP request, but the listener uses TLS: use a Kafka client",
    "WRONG_VERSION_NUMBER": (
        "this is not TLS, but the listener uses TLS: set security.protocol=SSL or SASL_SSL in the client"
    ),
    "UNSUPPORTED_PROTOCOL": "the client supports only TLS versions that are not in ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "the client supports none of ssl.cipher.suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "the client sent no certificate, but ssl.client.auth=required: configure a keystore in the client"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": _CLIENT_DISTRUSTS,
    # The client trusts a CA that has the same name as the broker's CA, but a different key.
    "TLSV1_ALERT_DECRYPT_ERROR": _CLIENT_DISTRUSTS,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _CLIENT_REJECTS,
    "SSLV3_ALERT_BAD_CERTIFICATE": _CLIENT_SAYS_INVALID,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _CLIENT_SAYS_INVALID,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": _CLIENT_SAYS_INVALID,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _EXPIRED,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the client and this broker have no TLS parameters in common",
    "TLSV1_ALERT_PROTOCOL_VERSION": (
        "the client supports only TLS versions that are not in ssl.enabled.protocols"
    ),
    "TLSV1_ALERT_INTERNAL_ERROR": (
        "the client ended the TLS handshake with an internal error: see the client's log"
    ),
}
