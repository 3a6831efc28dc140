"""Time as an object, so that a test or a simulation can own it.

Two times, because the first of them jumps: somebody sets the machine's clock, or its clock server does. The
time of day is for what is told or stored: timestamps of records, retention by them, the start of a
transaction. Everything that asks how long something took, or whether it is due again, asks the other one.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where a broker asks what time it is."""

    def now_ms(self) -> int:
        """The time of day: milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment in the past. It never goes back, whatever happens to the time of
        day."""


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
