"""Numbers and times as people read them. Pure; the filters of the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from kafka_compat.decoding.plain import visible
from kafka_compat.status import units

NOTHING: Final = "–"
"""What stands where nobody tells."""
_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def number(value: int | None) -> str:
    """`1,234,567`."""
    return NOTHING if value is None else f"{value:,}"


def size(value: float | None) -> str:
    """`1.5 MiB`."""
    return NOTHING if value is None else units.size(value)


def rate(per_second: float | None) -> str:
    """`12.5/s`."""
    return NOTHING if per_second is None else f"{units.rate(per_second)}/s"


def duration(seconds: float | None) -> str:
    """`0.4 s`, `3 min 20 s`, `2 d 4 h`: two parts at most."""
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    rest = round(seconds)
    parts: list[str] = []
    for step, unit in _STEPS:
        count, rest = divmod(rest, step)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def moment(time_ms: int | None) -> str:
    """`2026-11-24 10:53:10 UTC`."""
    if time_ms is None or time_ms < 0:
        return NOTHING
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def instant(time_ms: int | None) -> str:
    """`2026-11-24 10:53:10.123 UTC`."""
    shown_at = moment(time_ms)
    if time_ms is None or not shown_at.endswith(" UTC"):
        return shown_at
    return f"{shown_at.removesuffix(' UTC')}.{time_ms % 1000:03} UTC"


def percent(share: float | None) -> str:
    """Of a share of 1: `12 %`."""
    return NOTHING if share is None else f"{share * 100:.0f} %"


def shown(value: object) -> str:
    """A text, or a dash where there is none."""
    return NOTHING if value is None or value == "" else str(value)


def preview(text: str, length: int = 300) -> str:
    """The beginning of a text, in one line, with all that is in it to be seen."""
    one_line = visible(" ".join(text[: 4 * length].split()))
    return one_line if len(one_line) <= length else f"{one_line[:length]}…"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "number": number,
    "size": size,
    "rate": rate,
    "duration": duration,
    "moment": moment,
    "instant": instant,
    "percent": percent,
    "shown": shown,
    "visible": visible,
    "lines": partial(visible, lines=True),
    "preview": preview,
}
