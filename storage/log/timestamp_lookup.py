"""Finding records by time across the segments of a log, as ListOffsets asks.

A lookup is a generator. It finds batches by indexes and headers, which is quick, and yields a function for
each batch whose records must be looked at and are many or compressed: another thread may run it, and sends
what it returned. It yields None where the caller may do something else meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from functools import partial
from typing import NamedTuple

from kafka_compat.storage.log.log_segments import LogSegments
from kafka_compat.storage.records.batch import TIMESTAMP_TYPE_FLAG, BatchHeader
from kafka_compat.storage.records.record_times import first_record
from kafka_compat.storage.records.records import records_body
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import FileSlice, Segment

_QUICK_RECORDS_MAX = 2048
_SEGMENTS_AT_ONCE = 16
ANY_TIMESTAMP = -1 << 63


class TimestampOffset(NamedTuple):
    """A record by its timestamp (ms), offset, and the leader epoch it was written in (-1 when unknown)."""

    timestamp: int
    offset: int
    leader_epoch: int


Lookup = Generator[
    Callable[[], TimestampOffset | None] | None, TimestampOffset | None, TimestampOffset | None
]


def first_at_or_after(segments: LogSegments, timestamp: int, start_offset: int) -> Lookup:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`.

    Only whole segments and batches whose largest timestamp is too small are skipped, so that out-of-order
    timestamps are found as well.
    """
    index = 0
    while index < len(segments.all):
        segment = segments.all[index]
        if segment.max_timestamp.timestamp >= timestamp:
            found = yield from _search(segment, timestamp, start_offset)
            if found is not None:
                return found
        elif index % _SEGMENTS_AT_ONCE == _SEGMENTS_AT_ONCE - 1:
            yield None
        # Segments may have come and gone meanwhile; what took the place of this one is looked at again.
        index = 0 if segment.deleted else bisect_right(segments.base_offsets, segment.base_offset)
    return None


def first_with_max(segments: LogSegments, start_offset: int) -> Lookup:
    """The first record with the largest timestamp of the log, which is -1 where no record has one."""
    latest = max(segments.all, key=lambda segment: segment.max_timestamp.timestamp)
    return (yield from _search(latest, latest.max_timestamp.timestamp, start_offset))


def _search(segment: Segment, timestamp: int, start_offset: int) -> Lookup:
    segment.check_whole()
    offset = max(segment.time_index.offset_before(timestamp), start_offset)
    position = segment.position_of(offset)
    # Held: the segment may be closed, or gone, when another batch is to be looked at.
    file = segment.file
    for batch in scan_headers(file, position, segment.size_bytes, segment.index_interval_bytes):
        header = batch.header
        if header.max_timestamp < timestamp:
            continue
        data = FileSlice(file, batch.position, header.size_bytes)
        found = yield from search_batch(data, header, timestamp, start_offset)
        if found is not None:
            return found
    return None


def is_quick(header: BatchHeader) -> bool:
    """Whether the records of a batch are looked at sooner than another thread could be asked."""
    return header.magic == 2 and not header.attributes & 7 and header.record_count <= _QUICK_RECORDS_MAX


def search_batch(batch: FileSlice, header: BatchHeader, timestamp: int, start_offset: int) -> Lookup:
    """As `first_of_batch`, of one that is yet to be read; in another thread where that may take long."""
    look = partial(_first_of, batch, header, timestamp, start_offset)
    if is_quick(header):
        return look()
    return (yield look)


def _first_of(
    batch: FileSlice, header: BatchHeader, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    return first_of_batch(batch.read(), header, timestamp, start_offset)


def first_of_batch(
    data: bytes, header: BatchHeader, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    """The first record of one batch, which an old Kafka may have written, with at least this timestamp and
    offset.
    """
    if header.magic == 2:
        # Of records that a broker stamped the header tells the time.
        stamped = header.attributes & TIMESTAMP_TYPE_FLAG
        least = ANY_TIMESTAMP if stamped or timestamp == ANY_TIMESTAMP else timestamp - header.base_timestamp
        body = records_body(data, header)
        record = first_record(body, header.record_count, least, start_offset - header.base_offset)
        if record is None:
            return None
        found = header.max_timestamp if stamped else header.base_timestamp + record.timestamp_delta
        return TimestampOffset(found, header.base_offset + record.offset_delta, header.partition_leader_epoch)
    # Few logs hold old formats.
    from kafka_compat.storage.records.legacy import read_message, unwrap

    first, _ = read_message(data, 0)
    for message in unwrap(first) if first.codec else [first]:
        if message.timestamp >= timestamp and message.offset >= start_offset:
            return TimestampOffset(message.timestamp, message.offset, header.partition_leader_epoch)
    return None
