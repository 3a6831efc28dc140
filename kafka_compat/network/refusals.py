"""Who was refused lately, and why, for those who look; kept where somebody wants to look. No I/O."""

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
