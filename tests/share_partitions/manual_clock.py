"""A scheduler whose clock the test moves."""

from __future__ import annotations

from collections.abc import Callable


class Timer:
    def __init__(self, at_ms: int, call: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Clock:
    """A scheduler without real time."""

    def __init__(self) -> None:
        self.now_ms = 1
        self.timers: list[Timer] = []

    def monotonic_ms(self) -> int:
        return self.now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.now_ms + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def advance(self, ms: int) -> None:
        """Call the timers that are due within `ms`."""
        end_ms = self.now_ms + ms
        while True:
            due = [each for each in self.timers if each.call is not None and each.at_ms <= end_ms]
            if not due:
                self.now_ms = end_ms
                return
            timer = min(due, key=lambda each: each.at_ms)
            self.timers.remove(timer)
            self.now_ms = max(self.now_ms, timer.at_ms)
            assert timer.call is not None
            timer.call()
