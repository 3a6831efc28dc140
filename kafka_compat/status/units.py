"""Format sizes, counts and rates for people."""

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024


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
