"""Kafka's own quota managers (QuotaOracle.java), with a manual clock."""

from __future__ import annotations

import math
import struct

from tests.oracle.jvm import OracleJvm

PRODUCE, REQUEST, MUTATION = b"p", b"r", b"m"


class QuotaOracle(OracleJvm):
    """A quota manager for one kind of quota at a time."""

    def __init__(self, release: str) -> None:
        super().__init__("QuotaOracle", release)

    def begin(self, kind: bytes, samples: int, window_s: int) -> None:
        """Start a new manager without quotas."""
        self._ask(b"n" + kind + struct.pack(">ii", samples, window_s))

    def put(self, user: str, client_id: str, rate: float | None) -> None:
        """Set the quota of an entity, whose parts may be empty or `<default>`. None removes it."""
        self._tell(b"q", user, client_id, math.nan if rate is None else rate, 0)

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        return self._tell(b"r", user, client_id, value, now_ms)

    def count(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        self._tell(b"c", user, client_id, value, now_ms)

    def window_max(self, user: str, client_id: str, now_ms: int) -> int:
        return self._tell(b"w", user, client_id, 0, now_ms)

    def mutate(self, user: str, client_id: str, count: float, now_ms: int, *, strict: bool) -> int:
        return self._tell(b"s" if strict else b"m", user, client_id, count, now_ms)

    def _tell(self, question: bytes, user: str, client_id: str, value: float, now_ms: int) -> int:
        texts = b"".join(struct.pack(">H", len(text)) + text.encode() for text in (user, client_id))
        return self._ask(question + texts + struct.pack(">dq", value, now_ms))

    def _ask(self, question: bytes) -> int:
        self.say(question)
        answer: int = struct.unpack(">i", self.read(4))[0]
        return answer
