"""Which requests are timed: see the rules of request_counts.py. Pure."""

from __future__ import annotations

from typing import Final

TIMED_PER_S: Final = 20
_RARELY: Final = 1001
"""One in so many, where it turns out within a second that very many come."""
_NEVER: Final = 0
_FIRST: Final = 1


class Requests:
    """Those of one API in one version."""

    __slots__ = ("_left", "_paced", "count", "every", "next_timed")

    def __init__(self, is_watched: bool = True) -> None:
        self.count = 0
        self.next_timed = _FIRST if is_watched else _NEVER
        """Which one is timed next, of all that come."""
        self.every = 1
        """One in so many is timed."""
        self._left = TIMED_PER_S
        self._paced = 0

    def timed(self) -> None:
        """One is: which is the next."""
        self._left -= 1
        if self._left == 0:
            # Many come at once, and nobody knows yet how many.
            self.every = max(self.every, _RARELY)
        self.next_timed = self.count + self.every

    def pace(self, second_s: float) -> None:
        """So many seconds have passed since this was asked before."""
        rate = (self.count - self._paced) / second_s
        self._paced = self.count
        self._left = TIMED_PER_S
        # Odd, so that it does not fall in step with what clients repeat.
        self.every = int(rate / TIMED_PER_S) | 1
        self.next_timed = min(self.next_timed, self.count + self.every)
