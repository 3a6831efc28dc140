"""How far the stop of a broker is, and how long each of its steps took: lines of the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class StopLog:
    """Of one stop, which begins with it."""

    def __init__(self, broker_id: int, monotonic_ms: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self._monotonic_ms = monotonic_ms
        self._began_ms = self._step_began_ms = monotonic_ms()

    def done(self, step: str) -> None:
        """A step is done; the next one begins."""
        now_ms = self._monotonic_ms()
        log.info("Broker %d stops: %s (%d ms)", self._broker_id, step, now_ms - self._step_began_ms)
        self._step_began_ms = now_ms

    def over(self) -> None:
        """All are done."""
        log.info("Broker %d has stopped (%d ms)", self._broker_id, self._step_began_ms - self._began_ms)
