"""Time for coordinators: a clock that never jumps, and calls on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def monotonic_ms(self) -> int:
        """Milliseconds on a clock of unknown origin."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        """Call once, no sooner than after `delay_ms`, and never before this returns."""


class LoopScheduler:
    """Real time, on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        return self._loop.call_later(delay_ms / 1000, callback)
