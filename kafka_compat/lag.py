"""Consumer group lag, for metrics, the web console, `status`, the tools and the control API.

Rules
1. Lag in records is the end offset of a partition minus the committed offset, as in kafka-consumer-groups. It
   is negative if the committed offset is beyond the end, for example after a topic was recreated.
2. Lag in time is the age of the first record at or after the committed offset. It is 0 if there is no such
   record, or if its timestamp is in the future.
3. A partition without a committed offset has no lag.
4. An unknown lag is None, and so is any total that includes it. The total of no partitions is None.

No I/O.
"""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T", int, float)

UNKNOWN_MS = -1
"""Stands for a timestamp that cannot be read."""


def records_behind(committed: int | None, end: int | None) -> int | None:
    """Return the lag in records, or None if an offset is unknown. `end` is the end offset for consumers."""
    return None if committed is None or end is None else end - committed


def time_behind_ms(since_ms: int | None, now_ms: int) -> int | None:
    """Return the lag in ms, or None if it is unknown. `since_ms` is the timestamp of the first record at or
    after the committed offset: None if there is no such record, UNKNOWN_MS if its timestamp cannot be read.
    """
    if since_ms is None:
        return 0
    return max(0, now_ms - since_ms) if since_ms >= 0 else None


def total_records(partitions: Iterable[int | None]) -> int | None:
    """Return the total lag in records, or None if any lag is unknown."""
    known = _all_known(partitions)
    return sum(known) if known else None


def longest(partitions: Iterable[T | None]) -> T | None:
    """Return the maximum lag in time, in any unit, or None if any lag is unknown."""
    known = _all_known(partitions)
    return max(known) if known else None


def _all_known(values: Iterable[T | None]) -> list[T]:
    """Return the values, or an empty list if any value is unknown."""
    known: list[T] = []
    for value in values:
        if value is None:
            return []
        known.append(value)
    return known
