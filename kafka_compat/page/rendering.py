"""Render templates to HTML in steps, so that a long table does not hold up the event loop.

What a macro, or a `call` of one, makes is one piece and so one step. Rows are never within them: tables are
plain HTML in templates, which extend, or include, others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.long_work import Steps, batched
from kafka_compat.page import formats
from kafka_compat.page.visit import ROOT, link

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
STYLE: Final = f"{ROOT}/style.css"
_FOLDER: Final = Path(__file__).parent / "templates"
_PIECES_AT_ONCE: Final = 100
"""Of a template, some 200 µs."""


class Entry(NamedTuple):
    """A link of a menu. `writes`: only where changes are allowed."""

    path: str
    text: str
    writes: bool = False


MENU: Final = (
    Entry("/overview", "Overview"),
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
        Entry("/topic-settings", "Settings"),
        Entry("/produce", "Produce", writes=True),
        Entry("/copy", "Copy", writes=True),
    ),
    "group": (Entry("/group", "Members and lag"), Entry("/offsets", "Change offsets", writes=True)),
}
"""Each is asked for with ?name=."""


def tabs_of(kind: str, *, writes: bool) -> list[Entry]:
    """What there is to see of a "topic" or a "group", and with `writes` to do."""
    return [entry for entry in _TABS[kind] if writes or not entry.writes]


class Templates:
    """All templates of the page, compiled. To be made in a thread: it takes as long as a broker's start."""

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
        self.environment.filters.update(formats.FILTERS)
        self.environment.globals.update(
            link=link, menu=MENU, tabs_of=tabs_of, root=ROOT, style=f"{STYLE}?v={version}"
        )
        for name in self.environment.list_templates(extensions=["html"]):
            self.environment.get_template(name)

    def render(self, template: str, context: Mapping[str, Any]) -> Steps[str]:
        """A page."""
        whole: list[str] = []
        for pieces in batched(self.environment.get_template(template).generate(context), _PIECES_AT_ONCE):
            whole += pieces
            yield None
        return "".join(whole)
