"""The menu, and the tabs of a topic and of a group."""

from __future__ import annotations

from typing import Final, NamedTuple


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
