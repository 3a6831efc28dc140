"""Format sizes, counts and rates for people."""

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024
_DURATIONS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def size(size_bytes: float) -> str:
    """Format a size, such as `1.5 MiB`. Sizes below one KiB are whole bytes."""
    value = float(size_bytes)
    for unit in _UNITS:
        # Show 1.0 of the next unit instead of 1024.0.
        if value < _STEP - 0.05 or unit == _UNITS[-1]:
            break
        value /= _STEP
    return f"{value:.0f} {unit}" if unit == _UNITS[0] else f"{value:,.1f} {unit}"


def counted(number: int, what: str) -> str:
    """Format a count, such as `1 replica` or `1,234 replicas`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def rate(per_second: float) -> str:
    """Format a rate per second. Only small rates have a decimal digit."""
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == int(per_second) else f"{per_second:.1f}"


def duration(seconds: float) -> str:
    """Format a duration with at most two units: `0.4 s`, `3 min 20 s`, `2 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    rest = round(seconds)
    parts: list[str] = []
    for step, unit in _DURATIONS:
        count, rest = divmod(rest, step)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def figure(unit: str, value: float) -> str:
    """Format a value in a unit: `1,234/s` for records/s or requests/s, `1.5 MiB/s` for bytes/s, `12%` for a
    share, `3 min 20 s` or `12 ms` for seconds.
    """
    if unit == "bytes/s":
        return f"{size(value)}/s"
    if unit == "share":
        return f"{value * 100:.0f}%"
    if unit == "seconds":
        return f"{value * 1000:.0f} ms" if 0 < value < 1 else duration(value)
    if unit == "records":
        return f"{value:,.0f}"
    return f"{rate(value)}/s"
