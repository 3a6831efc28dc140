"""Clock interface of brokers and of the log store: time of day and monotonic time."""

from typing import Protocol


class Clock(Protocol):
    """Interface to two clocks: the time of day, which may jump, and a monotonic clock."""

    def now_ms(self) -> int:
        """Return the time of day in milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Return the time in milliseconds on a monotonic clock, for intervals and delays."""
