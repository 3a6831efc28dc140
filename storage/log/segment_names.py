"""Names of the files in a partition directory: which of them are segments, and segments with a wrong name.

The name of a segment is its base offset with 20 digits. Other software may have added or renamed files:
1. Files with other names are ignored. Apache Kafka takes `5.log` for an empty segment, and does not start if
   a name is no number.
2. A segment whose records begin before the offset of its name is renamed to the offset of its first record.
   Apache Kafka moves the records to such a segment. If the records overlap another segment, the file gets the
   suffix `.stray` and is ignored.

Only the last segment and segments without an offset index are checked for rule 2, as the others can be read
with their wrong name.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    file_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_compat.storage.filesystem import Filesystem

logger = logging.getLogger(__name__)

STRAY_SUFFIX: Final = ".stray"
_DIGITS: Final = 20
_END_OFFSET_MAX: Final = 2**63 - 1


def base_offset_of(name: str) -> int | None:
    """Return the base offset in the name of a segment's file, or None if the name has no such offset."""
    stem = name.partition(".")[0]
    if len(stem) != _DIGITS or not (stem.isascii() and stem.isdecimal()):
        return None
    base_offset = int(stem)
    return base_offset if base_offset < _END_OFFSET_MAX else None


def base_offsets(names: Sequence[str], suffix: str) -> list[int]:
    """Return the base offsets of the segments that have a file with this suffix, in the order of `names`."""
    found = (base_offset_of(name) for name in names if name.partition(".")[2] == suffix[1:])
    return [base_offset for base_offset in found if base_offset is not None]


def without_strangers(filesystem: Filesystem, directory: str, names: Sequence[str]) -> list[str]:
    """Return the names without those that look like segments but are not, and log a warning for each."""
    kept = []
    for name in names:
        if name.endswith((LOG_SUFFIX, SWAP_SUFFIX)):
            if base_offset_of(name) is None:
                logger.warning(
                    "Ignored %s/%s: the name of a segment is the offset of its first record, with 20 digits. "
                    "Rename or remove the file",
                    directory,
                    name,
                )
                continue
            if filesystem.is_directory(f"{directory}/{name}"):
                logger.warning("Ignored %s/%s: it is a directory. Remove it", directory, name)
                continue
        kept.append(name)
    return kept


def restore_names(filesystem: Filesystem, directory: str, names: Sequence[str]) -> bool:
    """Rename segments by rule 2, and return whether there were any. `names` may contain only true segments.
    Raises OSError.
    """
    bases = sorted(base_offsets(names, LOG_SUFFIX))
    indexed = set(base_offsets(names, OFFSET_INDEX_SUFFIX))
    wrong = {}
    for base in bases:
        if base == bases[-1] or base not in indexed:
            first = _first_offset(filesystem, f"{directory}/{file_name(base, LOG_SUFFIX)}")
            if first is not None and first < base:
                wrong[base] = first
    for base, first in wrong.items():
        bases.remove(base)
        path = f"{directory}/{file_name(base, LOG_SUFFIX)}"
        at = bisect_left(bases, first)
        before = f"{directory}/{file_name(bases[at - 1], LOG_SUFFIX)}" if at else ""
        overlaps = (
            first < 0
            or (at < len(bases) and _end_offset(filesystem, path) > bases[at])
            or (at > 0 and _end_offset(filesystem, before) > first)
        )
        target = f"{path}{STRAY_SUFFIX}" if overlaps else f"{directory}/{file_name(first, LOG_SUFFIX)}"
        # Indexes contain offsets relative to the base offset. They are rebuilt.
        for suffix in SEGMENT_SUFFIXES[1:]:
            filesystem.unlink(f"{directory}/{file_name(base, suffix)}")
            if not overlaps:
                filesystem.unlink(f"{directory}/{file_name(first, suffix)}")
        filesystem.rename(path, target)
        if overlaps:
            reason = "which another segment contains"
        else:
            reason = "so the name was wrong"
            bases.insert(at, first)
        logger.warning("Renamed %s to %s: its records begin at offset %d, %s", path, target, first, reason)
    return bool(wrong)


def _first_offset(filesystem: Filesystem, path: str) -> int | None:
    """Return the offset of the first batch of format 2, or None if the file does not begin with one."""
    file = filesystem.open(path)
    for batch in scan_headers(file, 0, file.size(), 0):
        return batch.header.base_offset if batch.header.magic == 2 else None
    return None


def _end_offset(filesystem: Filesystem, path: str) -> int:
    """Return the offset after the last whole batch, or 0 if there is none."""
    file = filesystem.open(path)
    end_offset = 0
    for batch in scan_headers(file, 0, file.size()):
        end_offset = batch.header.next_offset
    return end_offset
