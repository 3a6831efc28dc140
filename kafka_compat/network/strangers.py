"""Guesses at the protocol of rejected peers, for log messages, and counts of authentications."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_compat.network.framing import InvalidFrame

log = logging.getLogger(__name__)

QUIET_S = 60.0
TEXTS_MAX = 5
_REMEMBERED_MAX = 1000
_HTTP_BEGINNINGS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


class Strangers:
    """Rate-limited warnings about rejected peers, each logged once per address within QUIET_S seconds."""

    def __init__(self) -> None:
        self._logged: dict[str, tuple[float, set[str]]] = {}

    def complain(self, host: str, error: InvalidFrame, max_bytes: int, now_s: float) -> None:
        """Log a peer's invalid request size, and the protocol that its bytes suggest."""
        self.tell(host, f"Closed a connection from {host}: {describe(error, max_bytes)}", now_s)

    def tell(self, host: str, text: str, now_s: float) -> None:
        """Log a message about the peer at `host`, unless the message was logged recently."""
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
    """Describe the protocol that the first four bytes suggest, with advice for the operator."""
    if error.prefix.startswith(_TLS_HANDSHAKE):
        return (
            "this looks like a TLS handshake, but the listener uses plain text: set "
            "security.protocol=PLAINTEXT in the client"
        )
    if error.prefix in _HTTP_BEGINNINGS:
        return "this looks like an HTTP request, but the listener uses Kafka's protocol: use a Kafka client"
    if error.size_bytes <= 0:
        return f"a request of {error.size_bytes} bytes: the client does not use Kafka's protocol"
    return (
        f"a request of {error.size_bytes} bytes exceeds socket.request.max.bytes={max_bytes}: raise the "
        "limit if the request is valid; otherwise the client does not use Kafka's protocol"
    )


PASSED: Final = "successful-authentication"
PASSED_AGAIN: Final = "successful-reauthentication"
FAILED: Final = "failed-authentication"
FAILED_AGAIN: Final = "failed-reauthentication"
"""Kafka's metric names. A reauthentication takes place on an authenticated connection (KIP-368)."""


class Authentications:
    """Counts of successful and failed authentications with TLS or SASL since the broker started. Listeners
    without security have no counts.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self.expired = 0
        """Number of connections closed because their sessions had expired."""

    def count(self, listener: str, kind: str) -> None:
        self._counts[listener, kind] = self._counts.get((listener, kind), 0) + 1

    def of(self, listener: str, kind: str) -> int:
        return self._counts.get((listener, kind), 0)
