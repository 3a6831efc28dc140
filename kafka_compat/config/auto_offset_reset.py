"""Values of share.auto.offset.reset: where a share group starts to read a partition."""

import re
from typing import Final, NamedTuple

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
BY_DURATION: Final = "by_duration"

_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?=[-+\d])(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
"""Durations that Java's Duration.parse accepts."""

_LONGEST: Final = 1_000
_MOST_SECONDS: Final = (1 << 63) - 1


class AutoOffsetReset(NamedTuple):
    """`strategy` is EARLIEST, LATEST or BY_DURATION. `duration_ms` is the time before now for BY_DURATION."""

    strategy: str
    duration_ms: int = 0


def parse_reset(text: str) -> AutoOffsetReset:
    """Parse a value. Raises ValueError if it is invalid."""
    if text in (EARLIEST, LATEST):
        return AutoOffsetReset(text)
    strategy, _, duration = text.partition(":")
    if strategy != BY_DURATION:
        raise ValueError(text)
    duration_ms = _duration_ms(duration)
    if duration_ms is None:
        raise ValueError(text)
    return AutoOffsetReset(strategy, duration_ms)


def _duration_ms(text: str) -> int | None:
    """Return an ISO 8601 duration in milliseconds, or None if it is invalid or negative."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.group(2, 3, 4, 5)) or len(text) > _LONGEST:
        return None
    sign, days, hours, minutes, seconds, fraction = match.groups()
    total = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + int(seconds or 0)
    nanoseconds = int((fraction or "").ljust(9, "0"))
    total_ns = total * 1_000_000_000 + (-nanoseconds if (seconds or "").startswith("-") else nanoseconds)
    if sign == "-":
        total_ns = -total_ns
    if total_ns < 0 or total_ns > _MOST_SECONDS * 1_000_000_000:
        return None
    return total_ns // 1_000_000
