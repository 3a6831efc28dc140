"""Deadlines of a coordinator, all served by one timer of its scheduler."""

import heapq
from collections.abc import Callable

from kafka_compat.coordinator_runtime.scheduler import Scheduler, TimerHandle

_CANCELLED_MIN = 100
"""Minimum number of canceled deadlines before they are removed from the queue."""
_TURN_MS = 4
"""Time in ms for which calls are made before other work runs."""


class Deadline:
    """A function that is called at `at_ms` on the scheduler's clock, unless it is canceled first."""

    __slots__ = ("_timers", "at_ms", "callback")

    def __init__(self, timers: "Timers", at_ms: int, callback: Callable[[], None]) -> None:
        self._timers = timers
        self.at_ms = at_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.one_less()


class Timers:
    """Queue of deadlines, earliest first. Each heartbeat cancels a deadline that is minutes away; canceled
    deadlines stay queued until they are due, or until they make up more than half of a long queue.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._queue: list[tuple[int, int, Deadline]] = []
        self._order = 0
        self._live = 0
        self._wake_at_ms = 0
        self._wake_up: TimerHandle | None = None

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Deadline:
        """Call `callback` once, at `at_ms` or later, and never before this method returns."""
        deadline = Deadline(self, at_ms, callback)
        self._order += 1
        self._live += 1
        heapq.heappush(self._queue, (at_ms, self._order, deadline))
        self._wake_up_by(at_ms)
        return deadline

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Deadline:
        return self.call_at(self._scheduler.monotonic_ms() + delay_ms, callback)

    def close(self) -> None:
        """Drop all pending calls."""
        for _, _, deadline in list(self._queue):
            deadline.cancel()

    def one_less(self) -> None:
        self._live -= 1
        if not self._live:
            self._queue.clear()
            if self._wake_up is not None:
                self._wake_up.cancel()
                self._wake_up = None
        elif len(self._queue) > _CANCELLED_MIN + 2 * self._live:
            self._queue[:] = [each for each in self._queue if each[2].callback is not None]
            heapq.heapify(self._queue)

    def _wake_up_by(self, at_ms: int) -> None:
        """Schedule a wake-up at `at_ms`, unless an earlier one is set."""
        if self._wake_up is not None:
            if self._wake_at_ms <= at_ms:
                return
            self._wake_up.cancel()
        self._wake_at_ms = at_ms
        delay_ms = max(at_ms - self._scheduler.monotonic_ms(), 0)
        self._wake_up = self._scheduler.call_later(delay_ms, self._wake)

    def _wake(self) -> None:
        self._wake_up = None
        now_ms = self._scheduler.monotonic_ms()
        try:
            while (
                self._queue
                and self._queue[0][0] <= now_ms
                and self._scheduler.monotonic_ms() <= now_ms + _TURN_MS
            ):
                deadline = heapq.heappop(self._queue)[2]
                callback = deadline.callback
                if callback is not None:
                    deadline.cancel()
                    callback()
        finally:
            while self._queue and self._queue[0][2].callback is None:
                heapq.heappop(self._queue)
            if self._queue:
                self._wake_up_by(self._queue[0][0])
