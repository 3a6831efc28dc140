"""Recent rejections of peers, with their reasons, for the web console."""

from collections.abc import Callable
from typing import Final, NamedTuple

KINDS_MAX: Final = 500
_TEXT_MAX: Final = 500


class Refused(NamedTuple):
    """A rejection of one host for one reason, and the number of times that it occurred."""

    host: str
    reason: str
    first_ms: int
    last_ms: int
    times: int


class Refusals:
    """The last KINDS_MAX different rejections. `now_ms` returns the Unix time."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._known: dict[tuple[str, str], Refused] = {}
        """Rejections in the order of their last occurrence, the latest one last."""

    def note(self, host: str, reason: str) -> None:
        """Record the rejection of an address."""
        reason, now_ms = reason[:_TEXT_MAX], self._now_ms()
        known = self._known.pop((host, reason), None)
        if known is not None:
            self._known[host, reason] = known._replace(last_ms=now_ms, times=known.times + 1)
            return
        if len(self._known) >= KINDS_MAX:
            del self._known[next(iter(self._known))]
        self._known[host, reason] = Refused(host, reason, now_ms, now_ms, 1)

    def last(self) -> list[Refused]:
        """Return all recorded rejections, the latest one first."""
        return list(reversed(self._known.values()))
