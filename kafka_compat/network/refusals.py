"""Clients that were refused lately, and why, and how many have authenticated, by listener. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

KINDS_MAX: Final = 500
_TEXT_MAX: Final = 500


class Refused(NamedTuple):
    """The same refusal of the same host, `times` times so far."""

    host: str
    reason: str
    first_ms: int
    last_ms: int
    times: int


class Refusals:
    """The last KINDS_MAX different ones. `now_ms` is the time of day."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._known: dict[tuple[str, str], Refused] = {}
        """The one that was last is last."""

    def note(self, host: str, reason: str) -> None:
        """Somebody at this address was refused something."""
        reason, now_ms = reason[:_TEXT_MAX], self._now_ms()
        known = self._known.pop((host, reason), None)
        if known is not None:
            self._known[host, reason] = known._replace(last_ms=now_ms, times=known.times + 1)
            return
        if len(self._known) >= KINDS_MAX:
            del self._known[next(iter(self._known))]
        self._known[host, reason] = Refused(host, reason, now_ms, now_ms, 1)

    def last(self) -> list[Refused]:
        """All that are known, the last one first."""
        return list(reversed(self._known.values()))


PASSED: Final = "successful-authentication"
PASSED_AGAIN: Final = "successful-reauthentication"
FAILED: Final = "failed-authentication"
FAILED_AGAIN: Final = "failed-reauthentication"
"""As Kafka names them; again: on a connection that was let in before (KIP-368)."""


class Authentications:
    """How many clients have shown by TLS or SASL who they are, and how many could not, since the broker's
    start. On listeners without security there are none.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self.expired = 0
        """Connections that were closed since their session had ended."""

    def count(self, listener: str, kind: str) -> None:
        """One more."""
        self._counts[listener, kind] = self._counts.get((listener, kind), 0) + 1

    def of(self, listener: str, kind: str) -> int:
        """How many there were."""
        return self._counts.get((listener, kind), 0)
