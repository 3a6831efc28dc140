"""Advance simulated time for tests: the time of day, and the timers of coordinators.

Time in the network layer (idle connections, waiting fetches) is not advanced: a client does not become idle
because a test advanced the clock by seven days. The age of the client's heartbeats, however, follows the
coordinator's clock.

Time advances from timer to timer, and waits until the work of each timer has finished, so that timers set by
other timers also run at the right time.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable

from kafka_compat.clock import SystemClock

_STEPS_MAX = 200
"""Maximum number of moments in one call of `advance`. Timers that are less than 1/200 of the distance apart
fire in order at the same moment, because some timers fire every few seconds.
"""
_PASSES = 20
"""Number of event loop iterations after which the work that a timer triggered is done."""


class TravellingClock:
    """A clock whose time of day can be advanced or stopped. Its monotonic time is the machine's."""

    def __init__(self) -> None:
        self._machine = SystemClock()
        self._stands_ms: int | None = None
        self.ahead_ms = 0

    def now_ms(self) -> int:
        machine_ms = self._machine.now_ms() if self._stands_ms is None else self._stands_ms
        return machine_ms + self.ahead_ms

    def stand(self, *, still: bool) -> None:
        """If `still`, let only `ahead_ms` change the time; otherwise, follow the machine's clock."""
        self._stands_ms = self._machine.now_ms() if still else None

    def monotonic_ms(self) -> int:
        return self._machine.monotonic_ms()


class _Timer:
    """A call at the time `at_ms`, which is reached in real time or by advancing the clock."""

    __slots__ = ("_callback", "_handle", "at_ms")

    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self._callback: Callable[[], None] | None = callback
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_live(self) -> bool:
        return self._callback is not None

    def wait(self, loop: asyncio.AbstractEventLoop, delay_s: float) -> None:
        """Fire after `delay_s` seconds of real time."""
        self.disarm()
        self._handle = loop.call_later(delay_s, self.fire)

    def disarm(self) -> None:
        """Cancel the wait, so that only a call of `fire` fires the timer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def fire(self) -> None:
        callback = self._callback
        self.cancel()
        if callback is not None:
            callback()

    def cancel(self) -> None:
        self._callback = None
        self.disarm()


class TravellingScheduler:
    """A LoopScheduler (coordinators.scheduler) whose clock can be advanced."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fired: Callable[[], None]) -> None:
        """`fired` is called after each timer."""
        self._loop = loop
        self._fired = fired
        self._ahead_ms = 0
        self._stands_ms: int | None = None
        self._timers: list[tuple[int, int, _Timer]] = []
        self._order = itertools.count()

    def monotonic_ms(self) -> int:
        machine_ms = int(self._loop.time() * 1000) if self._stands_ms is None else self._stands_ms
        return machine_ms + self._ahead_ms

    def stand(self, *, still: bool) -> None:
        """If `still`, fire timers only in `put_forward`. Otherwise, the machine's clock also fires timers,
        and timers that are due fire immediately.
        """
        self._stands_ms = int(self._loop.time() * 1000) if still else None
        self._arm()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> asyncio.Handle | _Timer:
        if not delay_ms:
            return self._loop.call_soon(callback)

        def call() -> None:
            callback()
            self._fired()

        timer = _Timer(self.monotonic_ms() + delay_ms, call)
        heapq.heappush(self._timers, (timer.at_ms, next(self._order), timer))
        if self._stands_ms is None:
            timer.wait(self._loop, delay_ms / 1000)
        return timer

    def next_ms(self) -> int | None:
        """Return the time of the next timer."""
        while self._timers and not self._timers[0][2].is_live:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def put_forward(self, by_ms: int) -> None:
        """Advance the clock, and fire the timers that are due."""
        self._ahead_ms += by_ms
        now_ms = self.monotonic_ms()
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            heapq.heappop(self._timers)[2].fire()
        self._arm()

    def _arm(self) -> None:
        """Start the timers on the machine's clock, unless time stands still."""
        now_ms = self.monotonic_ms()
        for at_ms, _, timer in self._timers:
            if self._stands_ms is not None:
                timer.disarm()
            elif timer.is_live:
                timer.wait(self._loop, max(0, at_ms - now_ms) / 1000)


class TimeTravel:
    """The time of the brokers of one process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fired: Callable[[], None]) -> None:
        """`fired` is called after each timer of a coordinator."""
        self.clock = TravellingClock()
        self.scheduler = TravellingScheduler(loop, fired)
        self._travelling = asyncio.Lock()

    def stand(self, *, still: bool) -> None:
        """If `still`, advance time only in `advance`. Otherwise, time also follows the machine's clock, and
        timers that are due fire immediately.
        """
        self.clock.stand(still=still)
        self.scheduler.stand(still=still)

    def reset(self) -> None:
        """Return to the machine's time of day."""
        self.clock.ahead_ms = 0
        self.stand(still=False)

    async def advance(self, by_ms: int, at_rest: Callable[[int], Awaitable[None]]) -> None:
        """Advance the time. `at_rest` is awaited after each moment with due timers, with the elapsed
        simulated time in ms.
        """
        async with self._travelling:
            began_ms = self.scheduler.monotonic_ms()
            until_ms = began_ms + by_ms
            least_ms = by_ms // _STEPS_MAX + 1
            while (left_ms := until_ms - self.scheduler.monotonic_ms()) > 0:
                next_ms = self.scheduler.next_ms()
                step_ms = left_ms if next_ms is None else next_ms - self.scheduler.monotonic_ms()
                step_ms = min(max(step_ms, least_ms), left_ms)
                # Include the real time that has passed since the last step.
                self.clock.ahead_ms += step_ms
                self.scheduler.put_forward(step_ms)
                for _ in range(_PASSES):
                    await asyncio.sleep(0)
                await at_rest(self.scheduler.monotonic_ms() - began_ms)
