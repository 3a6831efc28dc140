"""Guesses at the protocol of rejected peers, for log messages, and counts of authentications."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_compat.network.framing import InvalidFrame

log = logging.getLogger(__name__)

QUIET_S = 60.0
REASONS_MAX = 50
_REMEMBERED_MAX = 1000
_VARIABLE_PARTS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_HTTP_BEGINNINGS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


class _Recent:
    """The rejections of one address since `since_s`."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.texts: dict[str, str] = {}
        """The message that was logged for each kind of reason."""
        self.repeats: dict[str, int] = {}
        """The number of later rejections, which were not logged, for each kind of reason."""
        self.others = 0
        """The number of rejections for kinds of reasons beyond REASONS_MAX."""


class Strangers:
    """Warnings about rejected peers.

    Many clients can share an address, and a client may reconnect many times per second. Therefore, the first
    message of each kind from an address is logged, and QUIET_S seconds after the first of them, the number of
    repetitions is logged for each kind. Messages are of the same kind if they differ only in numbers and in
    quoted text, such as user names, which a client can choose freely.
    """

    def __init__(self) -> None:
        self._recent: dict[str, _Recent] = {}
        """Recent rejections by address, in the order of `since_s`."""

    def complain(self, host: str, error: InvalidFrame, max_bytes: int, now_s: float) -> None:
        """Log a peer's invalid request size, and the protocol that its bytes suggest."""
        self.tell(host, f"Closed a connection from {host}: {describe(error, max_bytes)}", now_s)

    def tell(self, host: str, text: str, now_s: float) -> None:
        """Log a message about the peer at `host`, or count it if its kind was logged recently."""
        self.summarize(now_s)
        recent = self._recent.get(host)
        if recent is None:
            if len(self._recent) >= _REMEMBERED_MAX:
                self._forget(next(iter(self._recent)), now_s)
            recent = self._recent[host] = _Recent(now_s)
        kind = _VARIABLE_PARTS.sub("", text)
        if kind in recent.texts:
            recent.repeats[kind] = recent.repeats.get(kind, 0) + 1
        elif len(recent.texts) < REASONS_MAX:
            recent.texts[kind] = text
            log.warning("%s", text)
        else:
            recent.others += 1

    def summarize(self, now_s: float) -> None:
        """Log the number of repetitions for addresses whose first rejection was QUIET_S seconds ago."""
        while self._recent:
            host, recent = next(iter(self._recent.items()))
            if now_s - recent.since_s < QUIET_S:
                return
            self._forget(host, now_s)

    def _forget(self, host: str, now_s: float) -> None:
        recent = self._recent.pop(host)
        counts = [(times, recent.texts[kind]) for kind, times in recent.repeats.items()]
        if recent.others:
            counts.append((recent.others, "other reasons"))
        if counts:
            listed = "; ".join(f"{times} more: {text}" for times, text in sorted(counts, reverse=True))
            log.warning("Rejected %s repeatedly within %d s: %s", host, now_s - recent.since_s, listed)


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
