"""Deadlines of one group, as data: the group sets them, and the runtime reads the earliest one."""

import heapq
from collections.abc import Collection, Container
from enum import Enum
from typing import Final, NamedTuple

_REMOVED_MIN: Final = 100
"""Number of canceled timers that may always stay in the queue."""


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

    A heartbeat moves a deadline to a later time. The queue then keeps the former time, and the new one is
    queued when the former is reached.
    """

    __slots__ = ("_deadlines_ms", "_order", "_queue", "_queued_ms")

    def __init__(self) -> None:
        self._deadlines_ms: dict[Timer, int] = {}
        self._queue: list[tuple[int, int, Timer]] = []
        self._queued_ms: dict[Timer, int] = {}
        """Maps timers to the first time at which they are queued."""
        self._order = 0

    @property
    def wake_at_ms(self) -> int | None:
        """A time that is never later than the earliest deadline, or None if there are no deadlines."""
        return self._queue[0][0] if self._queue else None

    @property
    def pending(self) -> Collection[Timer]:
        """The timers that are set."""
        return self._deadlines_ms.keys()

    def set(self, timer: Timer, deadline_ms: int) -> None:
        self._deadlines_ms[timer] = deadline_ms
        queued_ms = self._queued_ms.get(timer)
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(timer, deadline_ms)
            self._limit_queue()

    def cancel(self, timer: Timer) -> None:
        self._deadlines_ms.pop(timer, None)
        if not self._deadlines_ms:
            # Free the memory of a dict that may have been large.
            self._deadlines_ms.clear()
        self._limit_queue()

    def clear(self) -> None:
        self._deadlines_ms.clear()
        self._rebuild()

    def keep_members(self, member_ids: Container[str]) -> None:
        """Cancel the timers of all other members."""
        for timer in list(self._deadlines_ms):
            if timer.member_id not in member_ids:
                del self._deadlines_ms[timer]
        self._limit_queue()

    def take_due(self, now_ms: int) -> Timer | None:
        """Remove the earliest timer that is due and return it, or return None if none is due."""
        while self._queue and self._queue[0][0] <= now_ms:
            at_ms, _, timer = heapq.heappop(self._queue)
            if self._queued_ms.get(timer) != at_ms:
                continue
            del self._queued_ms[timer]
            deadline_ms = self._deadlines_ms.get(timer)
            if deadline_ms is None:
                continue
            if deadline_ms <= now_ms:
                del self._deadlines_ms[timer]
                return timer
            self._push(timer, deadline_ms)
        return None

    def _push(self, timer: Timer, at_ms: int) -> None:
        self._order += 1
        self._queued_ms[timer] = at_ms
        heapq.heappush(self._queue, (at_ms, self._order, timer))

    def _limit_queue(self) -> None:
        """Remove canceled timers from the queue if they are the majority: those of members that have left
        would remain for a whole session timeout.
        """
        if len(self._queue) > _REMOVED_MIN + 2 * len(self._deadlines_ms):
            self._rebuild()

    def _rebuild(self) -> None:
        """Remove canceled timers from the queue."""
        self._queue.clear()
        self._queued_ms.clear()
        for timer, deadline_ms in self._deadlines_ms.items():
            self._push(timer, deadline_ms)
