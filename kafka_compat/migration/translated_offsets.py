"""Find the offset in a mirrored partition that corresponds to an offset of the original. No I/O.

`pipeline mirror` adds a header with the original topic, partition and offset to each record. The original
offsets increase within a mirrored partition, so the place is found by binary search, also if records were
deleted or compacted, or if other producers write to the mirrored partition.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final, NamedTuple

ORIGIN_HEADER: Final = "kafka-compat-origin"


class Mirrored(NamedTuple):
    """A mirrored record: its own offset, and that of the original."""

    offset: int
    original: int


class Translated(NamedTuple):
    """The offset at which a reader of the mirrored partition continues.

    `next_original` is the original offset of the next mirrored record, or None if that record is not mirrored
    yet. `last_original` is the original offset of the last mirrored record before, or None.
    """

    offset: int
    next_original: int | None
    last_original: int | None


Probes = Generator[int, Mirrored | None, Translated]
"""Yields offsets. The caller sends the first mirrored record at or after each of them, or None."""


def translated(original: int, start: int, end: int) -> Probes:
    """Translate a committed offset of the original partition. `start` and `end` are the log start offset and
    the last stable offset of the mirrored partition.
    """
    low, high = start, end
    last: int | None = None
    following: int | None = None
    while low < high:
        middle = (low + high) // 2
        found = yield middle
        if found is None:
            high = middle
        elif found.original >= original:
            high, following = middle, found.original
        else:
            low, last = found.offset + 1, found.original
    return Translated(low, following, last)


def origin_in(headers: Iterable[tuple[str, bytes | None]], topic: str, partition: int) -> int | None:
    """Return the original offset in a record's headers, or None if it was not mirrored from this partition.
    The last header counts: a record that was mirrored twice has two.
    """
    values = [value for key, value in headers if key == ORIGIN_HEADER and value is not None]
    if not values:
        return None
    place, _, offset = bytes(values[-1]).decode(errors="replace").rpartition("/")
    return int(offset) if place == f"{topic}/{partition}" and offset.isdecimal() else None
