"""What to say of a peer that is no client, or is not let in: what it seems to speak, and what to do."""

from __future__ import annotations

import logging

from kafka_compat.network.framing import InvalidFrame

log = logging.getLogger(__name__)

QUIET_S = 60.0
TEXTS_MAX = 5
_REMEMBERED_MAX = 1000
_HTTP_BEGINNINGS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


class Strangers:
    """Writes each line once in QUIET_S for an address, and TEXTS_MAX different ones at most."""

    def __init__(self) -> None:
        self._logged: dict[str, tuple[float, set[str]]] = {}

    def complain(self, host: str, error: InvalidFrame, max_bytes: int, now_s: float) -> None:
        """Log what the peer at `host` sent in place of a request's size."""
        self.tell(host, f"Closing a connection from {host}: {describe(error, max_bytes)}", now_s)

    def tell(self, host: str, text: str, now_s: float) -> None:
        """Log something of the peer at `host`, unless it was logged just now."""
        since_s, texts = self._logged.get(host, (-QUIET_S, set()))
        if now_s - since_s >= QUIET_S:
            if len(self._logged) >= _REMEMBERED_MAX:
                self._logged.clear()
            texts = set()
            self._logged[host] = now_s, texts
        if text not in texts and len(texts) < TEXTS_MAX:
            texts.add(text)
            log.warning("%s", text)


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
