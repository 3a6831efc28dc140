"""Lookup of records by timestamp across the segments of a log, for ListOffsets.

A lookup is a generator. It finds batches by indexes and headers, which is quick. If it must read the records
of a batch that has many or compressed records, it yields a function. The caller runs this function, possibly
in another thread, and sends the result to the generator. The lookup yields None where the caller may run
other work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.storage.errors import InvalidRecord
from kafka_compat.storage.records.batch import TIMESTAMP_TYPE_FLAG, BatchHeader
from kafka_compat.storage.records.records import read_varint, read_varlong, records_body
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment

if TYPE_CHECKING:
    from kafka_compat.storage.log.log_segments import LogSegments

_QUICK_RECORDS_MAX = 2048
_SEGMENTS_AT_ONCE = 16
ANY_TIMESTAMP = -1 << 63


class TimestampOffset(NamedTuple):
    """The timestamp (ms), offset and leader epoch (-1 if unknown) of a record."""

    timestamp: int
    offset: int
    leader_epoch: int


Lookup = Generator[
    Callable[[], TimestampOffset | None] | None, TimestampOffset | None, TimestampOffset | None
]


def first_at_or_after(segments: LogSegments, timestamp: int, start_offset: int) -> Lookup:
    """Find the first record at or after `start_offset` whose timestamp is at least `timestamp`.

    Segments and batches are skipped only if their largest timestamp is too small, so that timestamps that are
    out of order are found as well.
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
        # Segments may have been removed or replaced during the search. Search a replacement from its start.
        index = 0 if segment.deleted else bisect_right(segments.base_offsets, segment.base_offset)
    return None


def first_with_max(segments: LogSegments, start_offset: int) -> Lookup:
    """Find the first record with the log's largest timestamp. The timestamp is -1 if no record has one."""
    latest = max(segments.all, key=lambda segment: segment.max_timestamp.timestamp)
    return (yield from _search(latest, latest.max_timestamp.timestamp, start_offset))


def _search(segment: Segment, timestamp: int, start_offset: int) -> Lookup:
    segment.check_whole()
    position = segment.position_of(max(segment.time_index.offset_before(timestamp), start_offset))
    # Keep a reference: the segment may be closed or removed before the next batch is read.
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
    """Whether searching a batch takes less time than dispatching it to another thread."""
    return header.magic == 2 and not header.attributes & 7 and header.record_count <= _QUICK_RECORDS_MAX


def search_batch(batch: FileSlice, header: BatchHeader, timestamp: int, start_offset: int) -> Lookup:
    """Find a record with `first_of_batch`, in another thread if reading the batch is slow."""
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
    """Return a batch's first record with at least this timestamp and offset, or None if there is none."""
    if header.magic == 2:
        # With LogAppendTime, the timestamp of every record is the batch header's max_timestamp.
        stamped = header.attributes & TIMESTAMP_TYPE_FLAG
        least = ANY_TIMESTAMP if stamped or timestamp == ANY_TIMESTAMP else timestamp - header.base_timestamp
        body = records_body(data, header)
        record = first_record(body, header.record_count, least, start_offset - header.base_offset)
        if record is None:
            return None
        found = header.max_timestamp if stamped else header.base_timestamp + record.timestamp_delta
        return TimestampOffset(found, header.base_offset + record.offset_delta, header.partition_leader_epoch)
    # Import the module only if it is needed, because few logs contain old formats.
    from kafka_compat.storage.records.legacy import read_message, unwrap

    first, _ = read_message(data, 0)
    for message in unwrap(first) if first.codec else [first]:
        if message.timestamp >= timestamp and message.offset >= start_offset:
            return TimestampOffset(message.timestamp, message.offset, header.partition_leader_epoch)
    return None


_RUN_MIN = 16
_PAUSE_MAX = 4096
_BYTES_MIN = 6
_ASCII = bytes(range(128))
_CONTINUED = bytes(range(128, 256))


class RecordTime(NamedTuple):
    """The timestamp delta (ms) and offset delta of a record, relative to its batch."""

    timestamp_delta: int
    offset_delta: int


def first_record(body: bytes, count: int, least_timestamp: int, least_offset: int) -> RecordTime | None:
    """Return the first of `count` records in `body` with at least these deltas, or None if there is none.

    As in `record_scan`, there are two methods with the same result. One examines the records one by one. The
    other examines many records of the same length at once, with slices that contain one byte of each record.
    Other fields are not checked, because the batch was checked when it was appended.

    Raises InvalidRecord if the records are not contiguous.
    """
    position = index = attempt_at = 0
    pause = _RUN_MIN
    size = len(body)
    while index < count:
        if index >= attempt_at and count - index >= _RUN_MIN:
            run = _Run.at(body, position, count - index)
            if run is not None:
                found = run.first(least_timestamp, least_offset)
                if found is not None:
                    return found
                index += run.count
                position = run.end
                pause = _RUN_MIN
                continue
            attempt_at = index + pause
            pause = min(2 * pause, _PAUSE_MAX)
        length, at = read_varint(body, position)
        position = at + length
        if length <= 0 or position > size:
            raise InvalidRecord(f"a record of {length} bytes does not fit into its batch")
        timestamp_delta, at = read_varlong(body, at + 1)
        if timestamp_delta >= least_timestamp:
            offset_delta, _ = read_varint(body, at)
            if offset_delta >= least_offset:
                return RecordTime(timestamp_delta, offset_delta)
        index += 1
    return None


class _Run:
    """Consecutive records of the same length whose timestamp deltas have the same number of bytes."""

    __slots__ = ("_body", "_step", "_time_at", "_width", "count", "end")

    def __init__(self, body: bytes, start: int, content: int, step: int) -> None:
        """`content` is the position after the first record's length. `step` is the total size of a record."""
        self._body = body
        self._step = step
        self._time_at = content + 1
        self._width = 1
        self.count = (len(body) - start) // step
        for at in range(start, content):
            self._cut(at, body[at : at + 1])
        while body[content + self._width] > 127:
            self._cut(content + self._width, _CONTINUED)
            self._width += 1
        self._cut(content + self._width, _ASCII)
        self.end = start + self.count * step

    @classmethod
    def at(cls, body: bytes, start: int, count_max: int) -> _Run | None:
        """Return the run of records that begins at `start`, or None if it is too short."""
        length, content = read_varint(body, start)
        step = content - start + length
        # First compare the length of the next record: this check is cheap and nearly always decisive.
        if length < _BYTES_MIN or body[start + step : content + step] != body[start:content]:
            return None
        run = cls(body, start, content, step)
        return run if _RUN_MIN <= run.count <= count_max else None

    def _column(self, at: int) -> bytes:
        return self._body[at : at + (self.count - 1) * self._step + 1 : self._step]

    def _cut(self, at: int, allowed: bytes) -> None:
        """End the run before the first record whose byte at `at` is not in `allowed`."""
        self.count -= len(self._column(at).lstrip(allowed))

    def first(self, least_timestamp: int, least_offset: int) -> RecordTime | None:
        """Return the first record of the run with at least these deltas, or None if there is none."""
        # A timestamp's last byte contains the highest bits of its zigzag code (2 * delta if delta >= 0).
        least_top = max(2 * least_timestamp >> 7 * (self._width - 1), 0)
        if least_top > 127:
            return None
        candidates = self._column(self._time_at + self._width - 1).translate(_AT_LEAST[least_top])
        number = candidates.find(1)
        while number >= 0:
            timestamp_delta, at = read_varlong(self._body, self._time_at + number * self._step)
            if timestamp_delta >= least_timestamp:
                offset_delta, _ = read_varint(self._body, at)
                if offset_delta >= least_offset:
                    return RecordTime(timestamp_delta, offset_delta)
            number = candidates.find(1, number + 1)
        return None


_AT_LEAST = [bytes(least) + b"\1" * (256 - least) for least in range(128)]
"""Translation tables. The table at index N maps bytes of at least N to 1, and smaller bytes to 0."""
