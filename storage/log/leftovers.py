"""What a crash can leave in the folder of a log besides its segments, and what becomes of it before the log
opens.

Rules, as genuine Kafka has them
1. `.deleted` and `.cleaned` files go, the latter with the `.swap` files that they were to join.
2. `.swap` files have won: the segments that they came from go, and they lose their ending.
3. An index without its log file goes: a new segment at that offset would take it for its own.
"""

from __future__ import annotations

import logging

from kafka_compat.storage.filesystem import Filesystem
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    file_name,
)

logger = logging.getLogger(__name__)


def base_offsets(names: list[str], suffix: str) -> list[int]:
    """The offsets in the names of a log's files with this suffix."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return [int(stem) for stem in stems if stem.isdecimal()]


def clear_leftovers(filesystem: Filesystem, directory: str) -> list[str]:
    """Finish or undo what was interrupted; the names of the files that are there then."""
    _finish_interrupted_work(filesystem, directory)
    return _remove_orphans(filesystem, directory, filesystem.listdir(directory))


def _finish_interrupted_work(filesystem: Filesystem, directory: str) -> None:
    """Remove what a deletion or a cleaning left behind; complete the swap of cleaned segments (as Kafka
    does).
    """
    names = filesystem.listdir(directory)
    leftovers = [name for name in names if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp"))]
    cleaned = base_offsets(names, LOG_SUFFIX + CLEANED_SUFFIX)
    swapped = sorted(base_offsets(names, LOG_SUFFIX + SWAP_SUFFIX))
    if cleaned:
        # A cleaning or the split of a segment had not got to its swap; the source is still there.
        # Before the rest: without the `.cleaned` file they would count.
        leftovers[:0] = [
            name for name in names if name.endswith(SWAP_SUFFIX) and int(name.split(".")[0]) >= min(cleaned)
        ]
        swapped = [base for base in swapped if base < min(cleaned)]
    for name in leftovers:
        filesystem.unlink(f"{directory}/{name}")
    if swapped:
        # The old log file at the first base offset goes last of its segment: while it is there, no other
        # file at that offset is a new one (see LogFolder.replace).
        end_offset = _end_offset(filesystem, directory, swapped[-1])
        for base in base_offsets(names, LOG_SUFFIX):
            if swapped[0] <= base < end_offset:
                for suffix in reversed(SEGMENT_SUFFIXES):
                    filesystem.unlink(f"{directory}/{file_name(base, suffix)}")
    waiting = [name for name in filesystem.listdir(directory) if name.endswith(SWAP_SUFFIX)]
    for name in sorted(waiting, key=lambda name: name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        filesystem.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")


def _remove_orphans(filesystem: Filesystem, directory: str, names: list[str]) -> list[str]:
    """Remove indexes without their log file, which a new segment at the same offset would take for its
    own; the other names.
    """
    logs = set(base_offsets(names, LOG_SUFFIX))
    orphans = {
        file_name(base, suffix)
        for suffix in SEGMENT_SUFFIXES
        for base in base_offsets(names, suffix)
        if base not in logs
    }
    for name in sorted(orphans):
        logger.warning("removing %s/%s: its log file is missing", directory, name)
        filesystem.unlink(f"{directory}/{name}")
    return [name for name in names if name not in orphans]


def _end_offset(filesystem: Filesystem, directory: str, base_offset: int) -> int:
    """The end of the segment in a `.swap` file, whose place is taken even when it is empty."""
    file = filesystem.open(f"{directory}/{file_name(base_offset, LOG_SUFFIX)}{SWAP_SUFFIX}")
    end_offset = base_offset + 1
    for batch in scan_headers(file, 0, file.size()):
        end_offset = batch.header.next_offset
    return end_offset
