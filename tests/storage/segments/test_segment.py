"""A segment that is opened after a clean shutdown, and appended to before its indexes were needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.segments.open_segments import OpenSegments
from kafka_compat.storage.segments.segment import Segment
from kafka_compat.storage.segments.segment_files import SegmentFiles
from kafka_compat.storage.segments.time_index import TimestampEntry
from tests.storage.log_support import batch


def opened(directory: Path, size_bytes: int) -> Segment:
    return Segment(
        SegmentFiles(RealFilesystem(), str(directory), 0),
        OpenSegments(),
        0,
        size_bytes=size_bytes,
        index_interval_bytes=4096,
        created_ms=0,
    )


def append(segment: Segment, last_offset: int, timestamp: int) -> None:
    data = batch(timestamps=[timestamp])
    segment.write(data)
    segment.add_batch(last_offset, timestamp, read_header(data).size_bytes)


def closed_with_one_batch(directory: Path, timestamp: int) -> int:
    """Create a segment with one batch and complete index files, and return its size in bytes."""
    segment = opened(directory, 0)
    segment.create()
    append(segment, 0, timestamp)
    segment.sync_all()
    return segment.size_bytes


@pytest.mark.parametrize(("stored", "appended"), [(100, 200), (200, 100)])
def test_the_largest_timestamp_covers_batches_from_before_and_after_a_restart(
    tmp_path: Path, stored: int, appended: int
) -> None:
    segment = opened(tmp_path, closed_with_one_batch(tmp_path, stored))
    append(segment, 1, appended)
    expected = TimestampEntry(200, 0 if stored == 200 else 1)
    assert segment.max_timestamp == expected
    segment.sync_all()
    assert segment.max_timestamp == expected
    assert opened(tmp_path, segment.size_bytes).max_timestamp == expected


def test_a_batch_is_not_written_if_the_indexes_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = closed_with_one_batch(tmp_path, 100)
    segment = opened(tmp_path, size_bytes)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output error"):
        patch.setattr(RealFilesystem, "read_file", fail)
        append(segment, 1, 200)
    assert segment.file.size() == segment.size_bytes == size_bytes
    append(segment, 1, 200)
    assert segment.max_timestamp == TimestampEntry(200, 1)
