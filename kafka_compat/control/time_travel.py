"""Advance simulated time for tests: the time of day, and the timers of coordinators.

The timers of the network layer (idle connections, waiting fetches) are not advanced: a client does not become
idle because a test advanced the clock by seven days. The age of the client's heartbeats, however, follows the
coordinator's clock.

Time advances from timer to timer. The next timer is not reached until the work of the previous one has
finished, so that timers set by timers also fire at the right time.
"""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable

from kafka_compat.clock import SystemClock

_STEPS_MAX = 200
"""Maximum number of steps in one call of `advance`, because some timers fire every few seconds. Timers that
are less than 1/200 of the interval apart fire in the same step, in order.
"""
_PASSES = 20
"""Number of event loop iterations after which the work that a timer triggered is done."""


class TravellingClock:
    """A clock whose time of day can be advanced or stopped. `monotonic_ms` follows the system clock."""

    def __init__(self) -> None:
        self._machine = SystemClock()
        self._stands_ms: int | None = None
        self.ahead_ms = 0

    def now_ms(self) -> int:
        machine_ms = self._machine.now_ms() if self._stands_ms is None else self._stands_ms
        return machine_ms + self.ahead_ms

    def stand(self, *, still: bool) -> None:
        """If `still`, stop the time of day: only `ahead_ms` then changes it. Otherwise, let it run."""
        self._stands_ms = self._machine.now_ms() if still else None

    def monotonic_ms(self) -> int:
        return self._machine.monotonic_ms()


class _Timer:
    """A call scheduled for `at_ms`. It fires in real time, or when the clock is advanced."""

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
        """Stop waiting in real time, so that only `fire` fires the timer."""
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
    """A coordinator_runtime.scheduler.Scheduler whose clock can be advanced or stopped."""

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
        """If `still`, fire timers only in `put_forward`. Otherwise, timers also fire in real time, and timers
        that are due fire immediately.
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
        """Return the time of the next timer, or None if no timer is active."""
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
        """Let timers fire in real time, unless the clock is stopped."""
        now_ms = self.monotonic_ms()
        for at_ms, _, timer in self._timers:
            if self._stands_ms is not None:
                timer.disarm()
            elif timer.is_live:
                timer.wait(self._loop, max(0, at_ms - now_ms) / 1000)


class TimeTravel:
    """The simulated time of the brokers of one process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fired: Callable[[], None]) -> None:
        """`fired` is called after each coordinator timer."""
        self.clock = TravellingClock()
        self.scheduler = TravellingScheduler(loop, fired)
        self._travelling = asyncio.Lock()

    def stand(self, *, still: bool) -> None:
        """If `still`, advance time only in `advance`. Otherwise, time also follows the system clock, and
        timers that are due fire immediately.
        """
        self.clock.stand(still=still)
        self.scheduler.stand(still=still)

    def reset(self) -> None:
        """Return to the system time, and let the clock run."""
        self.clock.ahead_ms = 0
        self.stand(still=False)

    async def advance(self, by_ms: int, at_rest: Callable[[int], Awaitable[None]]) -> None:
        """Advance the time by `by_ms`, stopping at each timer, in at most _STEPS_MAX steps. After each step,
        await `at_rest(elapsed_ms)`, where `elapsed_ms` is the simulated time since the call.
        """
        async with self._travelling:
            began_ms = self.scheduler.monotonic_ms()
            until_ms = began_ms + by_ms
            least_ms = by_ms // _STEPS_MAX + 1
            while (left_ms := until_ms - self.scheduler.monotonic_ms()) > 0:
                next_ms = self.scheduler.next_ms()
                step_ms = left_ms if next_ms is None else next_ms - self.scheduler.monotonic_ms()
                step_ms = min(max(step_ms, least_ms), left_ms)
                # Advance only by the time left, because real time has also passed since the previous step.
                self.clock.ahead_ms += step_ms
                self.scheduler.put_forward(step_ms)
                for _ in range(_PASSES):
                    await asyncio.sleep(0)
                await at_rest(self.scheduler.monotonic_ms() - began_ms)
