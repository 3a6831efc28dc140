"""Which segments retention takes, as genuine Kafka decides it."""

from __future__ import annotations

from storage.config import LogConfig
from storage.retention import DeletionReason, SegmentFacts, deletable

NOW_MS = 1_000_000
SEGMENTS = [
    SegmentFacts(base_offset=0, end_offset=10, size_bytes=100, largest_timestamp=NOW_MS - 5_000),
    SegmentFacts(base_offset=10, end_offset=20, size_bytes=100, largest_timestamp=NOW_MS - 3_000),
    SegmentFacts(base_offset=20, end_offset=30, size_bytes=100, largest_timestamp=NOW_MS - 1_000),
]
KEEP = LogConfig(retention_ms=-1)


def bases(
    config: LogConfig,
    *,
    high_watermark: int = 30,
    log_start_offset: int = 0,
    segments: list[SegmentFacts] = SEGMENTS,
) -> dict[int, DeletionReason]:
    found = deletable(
        segments, config, now_ms=NOW_MS, high_watermark=high_watermark, log_start_offset=log_start_offset
    )
    return {segment.base_offset: reason for segment, reason in found}


def test_by_time_the_oldest_go_and_the_first_young_one_keeps_the_rest() -> None:
    assert bases(LogConfig(retention_ms=4_000)) == {0: DeletionReason.RETENTION_TIME}
    old_behind_young = [SEGMENTS[2], SEGMENTS[0]]
    assert bases(LogConfig(retention_ms=4_000), segments=old_behind_young) == {}


def test_an_expired_active_segment_goes_too() -> None:
    assert list(bases(LogConfig(retention_ms=500))) == [0, 10, 20]


def test_an_empty_active_segment_stays() -> None:
    empty = SegmentFacts(base_offset=30, end_offset=30, size_bytes=0, largest_timestamp=0)
    assert list(bases(LogConfig(retention_ms=500), segments=[*SEGMENTS, empty])) == [0, 10, 20]


def test_by_size_the_log_keeps_at_least_retention_bytes() -> None:
    assert bases(LogConfig(retention_ms=-1, retention_bytes=200)) == {0: DeletionReason.RETENTION_SIZE}
    assert bases(LogConfig(retention_ms=-1, retention_bytes=201)) == {}
    assert list(bases(LogConfig(retention_ms=-1, retention_bytes=0))) == [0, 10, 20]


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    assert list(bases(LogConfig(retention_ms=500), high_watermark=20)) == [0, 10]
    assert bases(LogConfig(retention_ms=500), high_watermark=5) == {}


def test_deleted_records_go_also_from_compacted_topics() -> None:
    compacted = LogConfig(retention_ms=500, cleanup_policy=frozenset({"compact"}))
    assert bases(compacted) == {}
    assert bases(compacted, log_start_offset=19) == {0: DeletionReason.LOG_START_OFFSET}
    assert list(bases(KEEP, log_start_offset=30)) == [0, 10]
