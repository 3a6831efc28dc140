"""Which of a log's oldest segments may go, and why. Pure.

Rules, as genuine Kafka has them
1. Segments go from the oldest on; the first that must stay keeps all behind it.
2. Only what lies wholly below the high watermark goes: nobody may still need it to commit.
3. By time: the largest timestamp of the segment is older than retention.ms. By size: the log without the
segment
   still has retention.bytes. By start: the segment lies wholly below the log start offset, which
   DeleteRecords moves; this one applies to compacted topics as well.
4. An empty active segment stays. A full one goes only when all before it go; the log rolls first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from storage.config import LogConfig


class DeletionReason(Enum):
    """Why a segment may go."""

    LOG_START_OFFSET = "below the log start offset"
    RETENTION_TIME = "older than retention.ms"
    RETENTION_SIZE = "beyond retention.bytes"


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What the decision needs of one segment. `end_offset` is the next segment's base, or the log end."""

    base_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp: int


def deletable(
    segments: Sequence[SegmentFacts],
    config: LogConfig,
    *,
    now_ms: int,
    high_watermark: int,
    log_start_offset: int,
) -> list[tuple[SegmentFacts, DeletionReason]]:
    """The oldest segments that may go, with the reasons. `segments` are all of the log, the last is the
    active one.
    """
    surplus_bytes = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    found: list[tuple[SegmentFacts, DeletionReason]] = []
    for segment in segments:
        is_active = segment is segments[-1]
        if segment.end_offset > high_watermark or (is_active and segment.size_bytes == 0):
            break
        if segment.end_offset <= log_start_offset and not is_active:
            reason = DeletionReason.LOG_START_OFFSET
        elif not config.delete:
            break
        elif config.retention_ms >= 0 and now_ms - segment.largest_timestamp > config.retention_ms:
            reason = DeletionReason.RETENTION_TIME
        elif config.retention_bytes >= 0 and surplus_bytes >= segment.size_bytes:
            reason = DeletionReason.RETENTION_SIZE
        else:
            break
        surplus_bytes -= segment.size_bytes
        found.append((segment, reason))
    return found
