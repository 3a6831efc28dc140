"""Findings of `kafka-compat migrate check`: what differs, or must change, before a broker is replaced."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple


class Level(StrEnum):
    """How much a finding matters."""

    CHANGE = "change"
    """Something stands in the way, and must be changed first."""
    UNCHECKED = "unchecked"
    """Part of the check could not be done."""
    DIFFERS = "differs"
    """Works, but differently from Apache Kafka."""
    INFO = "info"
    """A fact that shows what was checked."""


CLUSTER: Final = None
"""The broker of a finding about the whole cluster."""
MIRROR: Final = "copy the records to a new cluster with `kafka-compat pipeline mirror`"
"""The remedy for a cluster whose brokers cannot be replaced one by one."""


class Finding(NamedTuple):
    """One finding. `broker` is the broker ID, or None for the whole cluster. `area` is settings, security,
    directories, nodes, partitions or versions. `text` names the setting, file or node, and its value.
    `remedy` says what would be right, or is empty for Level.INFO.
    """

    broker: int | None
    level: Level
    area: str
    text: str
    remedy: str = ""


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 if something stands in the way, 2 if a part could not be checked, and 0 otherwise."""
    levels = {finding.level for finding in findings}
    if Level.CHANGE in levels:
        return 1
    return 2 if Level.UNCHECKED in levels else 0


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by broker, the whole cluster first, and then by level, the most important first."""
    levels = list(Level)
    return sorted(findings, key=lambda each: (each.broker is not None, each.broker, levels.index(each.level)))


def named(items: Iterable[object], limit: int = 5) -> str:
    """Join the first items with commas, and count the others."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(texts[:limit]) + more
