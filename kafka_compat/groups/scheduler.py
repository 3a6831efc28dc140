"""Time for coordinators: a clock that never jumps, and calls on it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from kafka_compat.errors import KafkaError

_STEP: Final = 500


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def monotonic_ms(self) -> int:
        """Milliseconds on a clock of unknown origin."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        """Call once, no sooner than after `delay_ms`, and never before this returns. With 0 it is called
        before any request that is not read yet.
        """


class LoopScheduler:
    """Real time, on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        return (
            self._loop.call_later(delay_ms / 1000, callback) if delay_ms else self._loop.call_soon(callback)
        )


def run_in_steps(
    scheduler: Scheduler,
    work: Iterator[None],
    is_wanted: Callable[[], bool],
    on_error: Callable[[KafkaError], None],
) -> None:
    """Do `work` some pieces at a time, the first ones now, so that other requests are served in between.

    It goes on as long as it is wanted; a KafkaError ends it.
    """
    if not is_wanted():
        return
    try:
        for _ in itertools.islice(work, _STEP):
            pass
    except KafkaError as error:
        on_error(error)
        return
    if is_wanted():
        scheduler.call_later(0, lambda: run_in_steps(scheduler, work, is_wanted, on_error))
