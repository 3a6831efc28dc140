"""Time as an object, so that tests and simulations can control it.

There are two clocks, because the time of day jumps when an operator or NTP sets it. Reported and stored
times, such as record timestamps and transaction start times, and time-based retention use the time of day.
Durations and deadlines use the monotonic clock.
"""

import time


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
