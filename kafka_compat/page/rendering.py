"""Render templates to HTML in chunks, so that a long table does not block the event loop.

The output of a macro or a `call` block is a single chunk. Rows are therefore never inside macros: tables are
plain HTML in templates that extend or include other templates.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.decoding.plain import visible
from kafka_compat.long_work import Steps, batched
from kafka_compat.page.chart import drawn
from kafka_compat.page.visit import ROOT, link
from kafka_compat.status import units

if TYPE_CHECKING:
    pass

NOTHING: Final = "–"
"""Placeholder for unknown values."""


def number(value: int | None) -> str:
    """Format an integer: `1,234,567`."""
    return NOTHING if value is None else f"{value:,}"


def size(value: float | None) -> str:
    """Format a number of bytes: `1.5 MiB`."""
    return NOTHING if value is None else units.size(value)


def rate(per_second: float | None) -> str:
    """Format a rate: `12.5/s`."""
    return NOTHING if per_second is None else f"{units.rate(per_second)}/s"


def duration(seconds: float | None) -> str:
    """Format a duration with at most two units: `0.4 s`, `3 min 20 s`, `2 d 4 h`."""
    return NOTHING if seconds is None else units.duration(seconds)


def figure(value: float | None, unit: str) -> str:
    """Format a value in one of the units of charts (`units.figure`)."""
    return NOTHING if value is None else units.figure(unit, value)


def clock(time_ms: int) -> str:
    """Format the time of day: `10:53`."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%H:%M}"


def moment(time_ms: int | None) -> str:
    """Format a time in seconds: `2026-11-24 10:53:10 UTC`."""
    if time_ms is None or time_ms < 0:
        return NOTHING
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def instant(time_ms: int | None) -> str:
    """Format a time in milliseconds: `2026-11-24 10:53:10.123 UTC`."""
    shown_at = moment(time_ms)
    if time_ms is None or not shown_at.endswith(" UTC"):
        return shown_at
    return f"{shown_at.removesuffix(' UTC')}.{time_ms % 1000:03} UTC"


def percent(share: float | None) -> str:
    """Format a share between 0 and 1: `12%`."""
    return NOTHING if share is None else f"{share * 100:.0f}%"


def shown(value: object) -> str:
    """Format a value, with a dash for None and for an empty string."""
    return NOTHING if value is None or value == "" else str(value)


def preview(text: str, length: int = 300) -> str:
    """Return `text` as one line, with invisible characters escaped, truncated to `length` characters."""
    one_line = visible(" ".join(text[: 4 * length].split()))
    return one_line if len(one_line) <= length else f"{one_line[:length]}…"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "number": number,
    "size": size,
    "rate": rate,
    "duration": duration,
    "figure": figure,
    "drawn": drawn,
    "clock": clock,
    "moment": moment,
    "instant": instant,
    "percent": percent,
    "shown": shown,
    "visible": visible,
    "lines": partial(visible, lines=True),
    "preview": preview,
}


POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
STYLE: Final = f"{ROOT}/style.css"
_FOLDER: Final = Path(__file__).parent / "templates"
_PIECES_AT_ONCE: Final = 100
"""Number of template chunks between two yields, which take about 200 µs."""


class Entry(NamedTuple):
    """A menu entry or a tab. With `writes`, it is shown only if changes are allowed."""

    path: str
    text: str
    writes: bool = False


MENU: Final = (
    Entry("/overview", "Overview"),
    Entry("/hour", "Last hour"),
    Entry("/topics", "Topics"),
    Entry("/groups", "Groups"),
    Entry("/transactions", "Transactions"),
    Entry("/brokers", "Brokers"),
    Entry("/disks", "Disks"),
    Entry("/clients", "Clients"),
    Entry("/refused", "Refused"),
    Entry("/logs", "Logs"),
)

_TABS: Final = {
    "topic": (
        Entry("/topic", "Partitions"),
        Entry("/messages", "Messages"),
        Entry("/latest", "Latest per key"),
        Entry("/topic-settings", "Settings"),
        Entry("/produce", "Produce", writes=True),
        Entry("/copy", "Copy", writes=True),
    ),
    "group": (Entry("/group", "Members and lag"), Entry("/offsets", "Change offsets", writes=True)),
}
"""Tabs of topics and groups. Their pages have the query parameter `name`."""


def tabs_of(kind: str, *, writes: bool) -> list[Entry]:
    """Return the tabs of a "topic" or a "group", including tabs for changes if `writes` is true."""
    return [entry for entry in _TABS[kind] if writes or not entry.writes]


class Templates:
    """The compiled templates. Create this object in a thread: compiling takes as long as broker startup."""

    def __init__(self) -> None:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        self.environment: Environment = Environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.style = (_FOLDER / "style.css").read_bytes()
        version = hashlib.sha256(self.style).hexdigest()[:12]
        self.environment.filters.update(FILTERS)
        self.environment.globals.update(
            link=link, menu=MENU, tabs_of=tabs_of, root=ROOT, style=f"{STYLE}?v={version}"
        )
        for name in self.environment.list_templates(extensions=["html"]):
            self.environment.get_template(name)

    def render(self, template: str, context: Mapping[str, Any]) -> Steps[str]:
        """Render a template to a page, yielding to the event loop."""
        whole: list[str] = []
        for pieces in batched(self.environment.get_template(template).generate(context), _PIECES_AT_ONCE):
            whole += pieces
            yield None
        return "".join(whole)
