"""What to say of a peer whose first bytes are no request: what it seems to speak, and what to do about it."""

from __future__ import annotations

import logging

from kafka_compat.network.framing import InvalidFrame

log = logging.getLogger(__name__)

QUIET_S = 60.0
_REMEMBERED_MAX = 1000
_HTTP_BEGINNINGS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


class Strangers:
    """Writes one line for each address in QUIET_S."""

    def __init__(self) -> None:
        self._told_s: dict[str, float] = {}

    def complain(self, host: str, error: InvalidFrame, max_bytes: int, now_s: float) -> None:
        """Log what the peer at `host` sent in place of a request's size."""
        if now_s - self._told_s.get(host, -QUIET_S) < QUIET_S:
            return
        if len(self._told_s) >= _REMEMBERED_MAX:
            self._told_s.clear()
        self._told_s[host] = now_s
        log.warning("Closing a connection from %s: %s", host, describe(error, max_bytes))


def describe(error: InvalidFrame, max_bytes: int) -> str:
    """What the four bytes look like, and what to do."""
    if error.prefix.startswith(_TLS_HANDSHAKE):
        return (
            "this looks like a TLS hello, and the listener speaks plaintext: "
            "set security.protocol=PLAINTEXT in the client"
        )
    if error.prefix in _HTTP_BEGINNINGS:
        return "this looks like an HTTP request, and the listener speaks Kafka's protocol: use a Kafka client"
    if error.size_bytes <= 0:
        return f"a request of {error.size_bytes} bytes: the client does not speak Kafka's protocol"
    return (
        f"a request of {error.size_bytes} bytes, and socket.request.max.bytes={max_bytes}: "
        "raise that if the client means it, else it does not speak Kafka's protocol"
    )
