"""Finding records by time across the segments of a log, as ListOffsets asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from storage.legacy import read_message, unwrap
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
        for found_timestamp, offset in _records(data, header.magic):
            if found_timestamp >= timestamp and offset >= start_offset:
                return TimestampOffset(found_timestamp, offset, header.partition_leader_epoch)
    return None


def _records(data: bytes, magic: int) -> Iterator[tuple[int, int]]:
    """Timestamp and offset of each record of one batch, which an old Kafka may have written."""
    if magic == 2:
        return ((record.timestamp, record.offset) for record in iter_records(data))
    message, _ = read_message(data, 0)
    messages = unwrap(message) if message.codec else [message]
    return ((message.timestamp, message.offset) for message in messages)
