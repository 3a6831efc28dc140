"""Lookup of a batch that a producer sends again, but that its state no longer contains.

A leader remembers the last five batches of a producer, because a client has at most five requests under way
to a broker. During a change of the leader, a client may have more: while its requests to the earlier leader
wait for other partitions, it already sends the next batches to the new leader, which has replicated the
earlier ones. If the earlier leader then rejects the requests, the client sends them again. The error
OUT_OF_ORDER_SEQUENCE_NUMBER would make the Java client repeat them until its delivery timeout, and then
report records as failed that are stored (docs/design/decisions/0037-older-retries.md).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kafka_compat.storage.log.producer_state import Duplicate
from kafka_compat.storage.records.batch import BatchHeader
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment

SEARCHED_BYTES: Final = 1024 * 1024
"""Number of bytes of the log that are searched. Reading all their headers takes about 10 ms."""
STEP_BYTES: Final = 64 * 1024
"""Number of bytes searched in each step. The search goes backwards, because a retry is usually recent."""


def repeated_batch(segments: Sequence[Segment], header: BatchHeader, end_offset: int) -> Duplicate | None:
    """Return the stored batch that equals a rejected one, or None if the last SEARCHED_BYTES before
    `end_offset` do not contain it. Raises OSError or CorruptRecord.
    """
    for stored in _headers_backwards(segments, end_offset):
        if (
            stored.producer_id == header.producer_id
            and stored.producer_epoch == header.producer_epoch
            and stored.base_sequence == header.base_sequence
            and stored.last_offset_delta == header.last_offset_delta
            and not stored.is_control
        ):
            return Duplicate(stored.base_offset, stored.next_offset - 1, stored.max_timestamp)
    return None


def _headers_backwards(segments: Sequence[Segment], end_offset: int) -> Iterator[BatchHeader]:
    """Iterate over the headers before `end_offset` in steps, beginning with the last step."""
    searched_bytes = 0
    for segment in reversed(segments):
        end = segment.position_of(end_offset)
        while end > 0:
            start = segment.offset_index.last_position_up_to(max(end - STEP_BYTES, 0))
            searched_bytes += end - start
            if searched_bytes > SEARCHED_BYTES:
                return
            for batch in scan_headers(segment.file, start, end):
                yield batch.header
            end = start
