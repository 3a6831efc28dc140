"""Clock interface of the log store: time of day and monotonic time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Interface to the time of day, which is used for timestamps and may jump, and to a monotonic clock."""

    def now_ms(self) -> int:
        """Return the time of day in milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Return the time in milliseconds on a monotonic clock, for intervals and delays."""
