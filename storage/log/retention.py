"""Retention: the choice of old segments to delete, and the reasons. No I/O.

Rules, as in Apache Kafka
1. Segments are deleted in order, oldest first, until a segment must be kept.
2. Only segments wholly below the high watermark are deleted; later segments still contain uncommitted
   records.
3. A segment is deleted by time if its largest timestamp is older than retention.ms, and by size if the log
   without the segment still has at least retention.bytes. It is also deleted if it is wholly below the log
   start offset, which DeleteRecords may have advanced; this also applies to compacted topics.
4. An empty active segment is kept. An active segment with records is deleted only together with all earlier
   segments; the log rolls first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from kafka_compat.storage.config import LogConfig


class DeletionReason(Enum):
    """The reason for deleting a segment."""

    LOG_START_OFFSET = "it is below the log start offset"
    RETENTION_TIME = "it is older than retention.ms"
    RETENTION_SIZE = "the log exceeds retention.bytes"


class RetainedSegment(Protocol):
    """The properties of a segment that determine whether it is deleted."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp in ms. This may read the disk, so it is used only if the age matters."""


S = TypeVar("S", bound=RetainedSegment)


def deletable(
    segments: Sequence[S],
    config: LogConfig,
    *,
    now_ms: int,
    size_bytes: int,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    at_most: int = sys.maxsize,
) -> list[tuple[S, DeletionReason]]:
    """Return the oldest segments that may be deleted, `at_most` of them, each with the reason.

    `segments` are all segments of the log, the active one last, and `size_bytes` is their total size.
    """
    surplus_bytes = size_bytes - config.retention_bytes
    going: list[tuple[S, DeletionReason]] = []
    last = len(segments) - 1
    for number, segment in enumerate(segments):
        if number == at_most:
            break
        is_active = number == last
        end_offset = log_end_offset if is_active else segments[number + 1].base_offset
        if end_offset > high_watermark or (is_active and segment.size_bytes == 0):
            break
        if end_offset <= log_start_offset and not is_active:
            reason = DeletionReason.LOG_START_OFFSET
        elif not config.delete:
            break
        elif config.retention_bytes >= 0 and surplus_bytes >= segment.size_bytes:
            reason = DeletionReason.RETENTION_SIZE
        elif config.retention_ms >= 0 and now_ms - segment.largest_timestamp > config.retention_ms:
            reason = DeletionReason.RETENTION_TIME
        else:
            break
        surplus_bytes -= segment.size_bytes
        going.append((segment, reason))
    return going
