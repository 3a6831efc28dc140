"""Deadlines of one group, as data: the group sets them, and the runtime reads the earliest one."""

from collections.abc import Container
from enum import Enum
from typing import NamedTuple


class TimerKind(Enum):
    JOIN = "join"
    """Deadline for members to join or rejoin. One per classic group, or one per classic member of a consumer
    group.
    """
    SYNC = "sync"
    """Deadline for every member's SyncGroup after a rebalance. One per classic group, or one per classic
    member of a consumer group.
    """
    SESSION = "session"
    """End of a member's session."""
    REVOCATION = "revocation"
    """Deadline for a member of a consumer group to revoke its partitions (KIP-848)."""
    PENDING = "pending"
    """Deadline for a member to rejoin with the ID assigned to it (KIP-394)."""


class Timer(NamedTuple):
    kind: TimerKind
    member_id: str = ""


class Timers:
    """Deadlines of one group, at most one for each timer.

    `wake_at_ms` is never later than the earliest deadline, but may be earlier: heartbeats constantly move
    deadlines, and the new earliest one is determined at the next wake-up.
    """

    __slots__ = ("_deadlines_ms", "_due", "wake_at_ms")

    def __init__(self) -> None:
        self._deadlines_ms: dict[Timer, int] = {}
        self._due: list[Timer] = []
        """The timers that `take_next` has found to be due, latest first. Some may have been moved since."""
        self.wake_at_ms: int | None = None

    def set(self, timer: Timer, deadline_ms: int) -> None:
        self._deadlines_ms[timer] = deadline_ms
        if self.wake_at_ms is None or deadline_ms < self.wake_at_ms:
            self.wake_at_ms = deadline_ms

    def is_set(self, timer: Timer) -> bool:
        return timer in self._deadlines_ms

    def cancel(self, timer: Timer) -> None:
        self._deadlines_ms.pop(timer, None)
        if not self._deadlines_ms:
            # Free the memory of a dict that may have been large.
            self._deadlines_ms.clear()

    def clear(self) -> None:
        self._deadlines_ms.clear()
        self._due.clear()
        self.wake_at_ms = None

    def keep_members(self, member_ids: Container[str]) -> None:
        """Cancel the timers of all other members."""
        for timer in list(self._deadlines_ms):
            if timer.member_id not in member_ids:
                del self._deadlines_ms[timer]

    def due(self, now_ms: int) -> list[Timer]:
        """Return the timers that are due, earliest first. Call `take` for each before acting on it."""
        due = [timer for timer, deadline_ms in self._deadlines_ms.items() if deadline_ms <= now_ms]
        due.sort(key=self._deadlines_ms.__getitem__)
        return due

    def take(self, timer: Timer, now_ms: int) -> bool:
        """Remove a due timer. Return False if the action of an earlier timer has canceled or moved it."""
        deadline_ms = self._deadlines_ms.get(timer)
        if deadline_ms is None or deadline_ms > now_ms:
            return False
        del self._deadlines_ms[timer]
        return True

    def take_next(self, now_ms: int) -> Timer | None:
        """Remove and return the earliest timer that is due, or return None. This takes constant time on
        average, even if all timers are due.
        """
        self._due = self._due or self.due(now_ms)[::-1]
        while self._due:
            timer = self._due.pop()
            if self.take(timer, now_ms):
                return timer
        return None

    def postpone(self, at_ms: int) -> None:
        """Wake up at `at_ms`, even if a deadline is earlier."""
        self.wake_at_ms = at_ms

    def find_earliest(self) -> None:
        """Set `wake_at_ms` to the earliest deadline, or to None if there are no deadlines. It stays in the
        past while timers are due.
        """
        if self._due:
            return
        self.wake_at_ms = min(self._deadlines_ms.values(), default=None)
