"""Format sizes, counts and rates for people."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024


def size(size_bytes: float) -> str:
    """`1.5 MiB`; whole bytes below a KiB."""
    value = float(size_bytes)
    for unit in _UNITS:
        # Use 1.0 of the next unit rather than 1024.0.
        if value < _STEP - 0.05 or unit == _UNITS[-1]:
            break
        value /= _STEP
    return f"{value:.0f} {unit}" if unit == _UNITS[0] else f"{value:,.1f} {unit}"


def counted(number: int, what: str) -> str:
    """`1 replica`, `1,234 replicas`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def rate(per_second: float) -> str:
    """A number per second, with a decimal digit only if it is small."""
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == int(per_second) else f"{per_second:.1f}"
