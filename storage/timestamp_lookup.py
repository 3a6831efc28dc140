"""Finding records by time across the segments of a log, as ListOffsets asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from storage.records import iter_records
from storage.scan import scan_headers
from storage.segment import FileSlice, Segment


class TimestampOffset(NamedTuple):
    """A record by its timestamp (ms), offset, and the leader epoch it was written in (-1 when unknown)."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Sequence[Segment], timestamp: int, start_offset: int
) -> TimestampOffset | None:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`.

    Only whole segments and batches whose largest timestamp is too small are skipped, so that out-of-order
    timestamps are found as well.
    """
    for segment in segments:
        if segment.max_timestamp.timestamp >= timestamp:
            found = _search(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def first_with_max(segments: Sequence[Segment], start_offset: int) -> TimestampOffset | None:
    """The first record with the largest timestamp among `segments`."""
    latest = max(segments, key=lambda segment: segment.max_timestamp.timestamp)
    largest = latest.max_timestamp.timestamp
    return _search(latest, largest, start_offset) if largest >= 0 else None


def _search(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    offset = max(segment.time_index.offset_before(timestamp), start_offset)
    position = segment.position_of(offset)
    for batch in scan_headers(segment.file, position, segment.size_bytes, segment.index_interval_bytes):
        header = batch.header
        if header.max_timestamp < timestamp:
            continue
        data = FileSlice(segment.file, batch.position, header.size_bytes).read()
        for record in iter_records(data):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None
