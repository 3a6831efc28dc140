"""Lookup of a batch that a producer sends again, but that its state no longer contains.

A leader remembers the last five batches of a producer, because a client has at most five requests under way
to a broker. During a change of the leader, a client may have more: while its requests to the earlier leader
wait for other partitions, it already sends the next batches to the new leader, which has replicated the
earlier ones. If the earlier leader then rejects the requests, the client sends them again. The error
OUT_OF_ORDER_SEQUENCE_NUMBER would make the Java client repeat them until its delivery timeout, and then
report records as failed that are stored (docs/design/decisions/0037-older-retries.md).
"""

from collections.abc import Sequence
from typing import Final

from kafka_compat.storage.log.producer_state import Duplicate, EarlierSequence
from kafka_compat.storage.records.batch import BatchHeader
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment

SEARCHED_BYTES: Final = 1024 * 1024
"""Size of the part of the log that is searched. Reading its headers takes at most about 10 ms."""


def repeated_batch(
    segments: Sequence[Segment], header: BatchHeader, earlier: EarlierSequence, leader_epoch: int
) -> Duplicate | None:
    """Return the stored batch that equals a rejected one, or None if the last SEARCHED_BYTES before the
    batches in the producer's state do not contain it, or if it was stored in this `leader_epoch`: then, the
    error is the same as Kafka's. Raises OSError.
    """
    searched_bytes = SEARCHED_BYTES
    for segment in reversed(segments):
        end = segment.position_of(earlier.remembered_offset)
        start = segment.offset_index.last_position_up_to(max(end - searched_bytes, 0))
        for batch in scan_headers(segment.file, start, end):
            stored = batch.header
            if (
                stored.producer_id == header.producer_id
                and stored.producer_epoch == header.producer_epoch
                and stored.base_sequence == header.base_sequence
                and stored.last_offset_delta == header.last_offset_delta
                and stored.partition_leader_epoch < leader_epoch
                and not stored.is_control
            ):
                return Duplicate(stored.base_offset, stored.next_offset - 1, stored.max_timestamp)
        searched_bytes -= end - start
        if searched_bytes <= 0:
            break
    return None
