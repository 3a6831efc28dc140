"""Scheduler of a coordinator: a monotonic clock, timers, and cooperative long-running work."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Protocol

_STEP_SIZE: Final = 1_000
_STEP_MS: Final = 4
"""Time in ms after which long-running work yields to the event loop."""
_LOOK_SIZE: Final = 20
"""Amount of work between two readings of the clock, in the unit of step sizes."""


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def monotonic_ms(self) -> int:
        """Return the milliseconds since an arbitrary moment, on a monotonic clock."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        """Call `callback` once, after at least `delay_ms`, and never before this method returns. With a delay
        of 0, it is called before any request that has not been read yet.
        """


class LoopScheduler:
    """Scheduler that runs in real time on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        return (
            self._loop.call_later(delay_ms / 1000, callback) if delay_ms else self._loop.call_soon(callback)
        )


def run_cooperatively(
    scheduler: Scheduler,
    work: Iterator[int],
    is_wanted: Callable[[], bool],
    on_error: Callable[[Exception], None],
) -> None:
    """Run `work` in slices, the first one immediately, so that other requests are served between them. Each
    step yields its size; a step of size 1 takes a few microseconds.

    The work continues as long as `is_wanted()` is true. An exception ends it and is passed to `on_error`.
    """
    if not is_wanted():
        return
    end_ms = scheduler.monotonic_ms() + _STEP_MS
    done, next_look = 0, _LOOK_SIZE
    try:
        for size in work:
            done += size
            if done >= next_look:
                if done >= _STEP_SIZE or scheduler.monotonic_ms() >= end_ms:
                    break
                next_look = done + _LOOK_SIZE
    except Exception as error:
        on_error(error)
        return
    if is_wanted():
        scheduler.call_later(0, lambda: run_cooperatively(scheduler, work, is_wanted, on_error))
