"""Idle time and stalls of this process's event loop.

A timer runs every INTERVAL_S; a delay of more than STALL_S is a stall. Counters are sampled every second, for
the rates of the last minute.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

INTERVAL_S: Final = 0.025
STALL_S: Final = 0.020
WINDOW_S: Final = 60


class Second(NamedTuple):
    """Counters at the end of one second."""

    at_s: float
    """Time of a monotonic clock."""
    busy_s: float
    """CPU time of the event loop's thread so far."""
    counts: Sequence[int]
    """Values of the counters at `at_s`."""


class LoopWatch:
    """Monitor of the event loop, from `start` to `stop`."""

    def __init__(self, counted: Callable[[], Sequence[int]], pace: Callable[[float], None]) -> None:
        """`counted` returns the counters for `rates`. `pace` is called each second with the elapsed time."""
        self.stalls = 0
        self.stalled_s = 0.0
        self._longest_delay_s = 0.0
        self._counted = counted
        self._pace = pace
        self._seconds: deque[Second] = deque(maxlen=WINDOW_S + 1)
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._began_s = self._busy_before_s = 0.0

    def start(self) -> None:
        self._began_s, self._busy_before_s = time.monotonic(), self.busy_s
        self._seconds.append(self._second(time.monotonic()))
        self._look_again(time.monotonic())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def busy_s(self) -> float:
        """CPU time of the event loop's thread so far."""
        return time.thread_time()

    @property
    def idle_s(self) -> float:
        """Idle time of the event loop's thread since `start`."""
        return max(time.monotonic() - self._began_s - (self.busy_s - self._busy_before_s), 0.0)

    def idle(self) -> float:
        """Return the idle share of the event loop's thread in the last minute, from 0 to 1."""
        first, now_s = self._seconds[0], time.monotonic()
        took_s = now_s - first.at_s
        return 1.0 if took_s <= 0 else min(max(1 - (self.busy_s - first.busy_s) / took_s, 0.0), 1.0)

    def rates(self) -> list[float]:
        """Return the increase of each counter per second over the last minute."""
        first, counts = self._seconds[0], self._counted()
        took_s = time.monotonic() - first.at_s
        if took_s <= 0 or len(first.counts) != len(counts):
            return [0.0] * len(counts)
        return [max(count - before, 0) / took_s for count, before in zip(counts, first.counts, strict=True)]

    def take_longest_delay_s(self) -> float:
        """Return the longest delay of the timer since the last call of this method."""
        found, self._longest_delay_s = self._longest_delay_s, 0.0
        return found

    def _second(self, now_s: float) -> Second:
        return Second(now_s, self.busy_s, self._counted())

    def _look(self) -> None:
        now_s = time.monotonic()
        late_s = now_s - self._due_s
        self._longest_delay_s = max(self._longest_delay_s, late_s)
        if late_s > STALL_S:
            self.stalls += 1
            self.stalled_s += late_s
        last_s = self._seconds[-1].at_s
        if now_s - last_s >= 1:
            self._seconds.append(self._second(now_s))
            self._pace(now_s - last_s)
        self._look_again(now_s)

    def _look_again(self, now_s: float) -> None:
        self._due_s = now_s + INTERVAL_S
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._look)
