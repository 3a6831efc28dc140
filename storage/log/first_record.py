"""Lookup of the first record at or after an offset. Its timestamp is used to compute consumer lag in seconds.

Transaction markers do not count as records. If compaction removed the record at the offset, the next record
is returned. A lookup is a generator as in `timestamp_lookup`. It finds the batch by indexes and headers, and
reads the records only if the header does not contain the timestamp.
"""

from bisect import bisect_right

from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.log.timestamp_lookup import ANY_TIMESTAMP, Lookup, TimestampOffset, search_batch
from kafka_compat.storage.records.batch import TIMESTAMP_TYPE_FLAG, BatchHeader
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment

_BATCHES_AT_ONCE = 256


def first_record_from(log: Log, offset: int, end_offset: int) -> Lookup:
    """Return the offset and timestamp of the first record in [offset, end_offset), or None if there is no
    record. A missing timestamp is -1. Raises a StorageError if the record cannot be read.
    """
    try:
        return (yield from _first(log, max(offset, log.log_start_offset), end_offset))
    except (OSError, CorruptRecord) as error:
        raise log.unreadable(error) from error


def _first(log: Log, offset: int, end_offset: int) -> Lookup:
    segments = log.segments
    number = segments.number_of(offset)
    while number < len(segments.all):
        segment = segments.all[number]
        if segment.base_offset >= end_offset:
            return None
        found = yield from _search(segment, offset, end_offset)
        if found is not None:
            return found if found.offset < end_offset else None
        # Segments may have been removed or replaced during the search. Search a replacement from its start.
        number = (
            segments.number_of(offset)
            if segment.deleted
            else bisect_right(segments.base_offsets, segment.base_offset)
        )
    return None


def _search(segment: Segment, offset: int, end_offset: int) -> Lookup:
    segment.check_whole()
    position = segment.position_of(offset)
    # Keep a reference: the segment may be closed or removed before the next batch is read.
    file = segment.file
    batches = scan_headers(file, position, segment.size_bytes, segment.index_interval_bytes)
    for count, batch in enumerate(batches, 1):
        header = batch.header
        if header.magic == 2 and header.base_offset >= end_offset:
            return None
        if not header.is_control:
            timestamp = _timestamp_from_header(header, offset)
            if timestamp is not None:
                return TimestampOffset(
                    timestamp, max(header.base_offset, offset), header.partition_leader_epoch
                )
            data = FileSlice(file, batch.position, header.size_bytes)
            found = yield from search_batch(data, header, ANY_TIMESTAMP, offset)
            if found is not None:
                return found
        if count % _BATCHES_AT_ONCE == 0:
            yield None
    return None


def _timestamp_from_header(header: BatchHeader, offset: int) -> int | None:
    """Return the timestamp of the batch's first record at or after `offset`, or None if the header does not
    determine it, so that the records must be read.
    """
    one_time = header.record_count == 1 or header.attributes & TIMESTAMP_TYPE_FLAG
    is_whole = header.record_count == header.last_offset_delta + 1 and offset <= header.last_offset
    return header.max_timestamp if header.magic == 2 and one_time and is_whole else None
