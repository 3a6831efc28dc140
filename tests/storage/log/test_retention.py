"""The choice of segments that retention deletes, which must match Apache Kafka's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.log.retention import DeletionReason, RetainedSegment, deletable

NOW_MS = 1_000_000


@dataclass(frozen=True)
class Facts:
    """The properties of a segment that retention uses."""

    base_offset: int
    size_bytes: int
    largest_timestamp: int


class Unread:
    """A segment whose largest timestamp would have to be read from disk."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.size_bytes = 100

    @property
    def largest_timestamp(self) -> int:
        raise AssertionError(f"the timestamp of the segment at {self.base_offset} was read unnecessarily")


SEGMENTS = [
    Facts(base_offset=0, size_bytes=100, largest_timestamp=NOW_MS - 5_000),
    Facts(base_offset=10, size_bytes=100, largest_timestamp=NOW_MS - 3_000),
    Facts(base_offset=20, size_bytes=100, largest_timestamp=NOW_MS - 1_000),
]
KEEP = LogConfig(retention_ms=-1)


def bases(
    config: LogConfig,
    *,
    high_watermark: int = 30,
    log_start_offset: int = 0,
    segments: Sequence[RetainedSegment] = SEGMENTS,
) -> dict[int, DeletionReason]:
    found = deletable(
        segments,
        config,
        now_ms=NOW_MS,
        size_bytes=sum(segment.size_bytes for segment in segments),
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        log_end_offset=30,
    )
    return {segment.base_offset: reason for segment, reason in found}


def test_old_segments_are_deleted_up_to_the_first_recent_segment() -> None:
    assert bases(LogConfig(retention_ms=4_000)) == {0: DeletionReason.RETENTION_TIME}
    old_behind_young = [Facts(0, 100, NOW_MS - 1_000), Facts(10, 100, NOW_MS - 5_000)]
    assert bases(LogConfig(retention_ms=4_000), segments=old_behind_young) == {}


def test_only_segment_timestamps_that_affect_retention_are_read() -> None:
    unread: list[RetainedSegment] = [Unread(0), Unread(10), Unread(20)]
    assert bases(LogConfig(retention_ms=-1), segments=unread) == {}
    assert list(bases(LogConfig(retention_ms=-1, retention_bytes=200), segments=unread)) == [0]
    assert list(bases(KEEP, segments=unread, log_start_offset=20)) == [0, 10]
    assert bases(LogConfig(retention_ms=500), segments=unread, high_watermark=9) == {}
    young: list[RetainedSegment] = [Facts(0, 100, NOW_MS), Unread(10), Unread(20)]
    assert bases(LogConfig(retention_ms=500), segments=young) == {}


def test_an_expired_active_segment_is_deleted() -> None:
    assert list(bases(LogConfig(retention_ms=500))) == [0, 10, 20]


def test_an_empty_active_segment_is_kept() -> None:
    empty = Facts(base_offset=30, size_bytes=0, largest_timestamp=0)
    assert list(bases(LogConfig(retention_ms=500), segments=[*SEGMENTS, empty])) == [0, 10, 20]


def test_retention_by_size_keeps_at_least_retention_bytes() -> None:
    assert bases(LogConfig(retention_ms=-1, retention_bytes=200)) == {0: DeletionReason.RETENTION_SIZE}
    assert bases(LogConfig(retention_ms=-1, retention_bytes=201)) == {}
    assert list(bases(LogConfig(retention_ms=-1, retention_bytes=0))) == [0, 10, 20]


def test_records_at_or_above_the_high_watermark_are_not_deleted() -> None:
    assert list(bases(LogConfig(retention_ms=500), high_watermark=20)) == [0, 10]
    assert bases(LogConfig(retention_ms=500), high_watermark=5) == {}


def test_compacted_topics_delete_segments_below_the_log_start_offset() -> None:
    compacted = LogConfig(retention_ms=500, cleanup_policy=frozenset({"compact"}))
    assert bases(compacted) == {}
    assert bases(compacted, log_start_offset=19) == {0: DeletionReason.LOG_START_OFFSET}
    assert list(bases(KEEP, log_start_offset=30)) == [0, 10]
