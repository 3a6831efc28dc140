"""Batches of the metadata log: checks of fetched bytes, and the committed records in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka_compat.coordination.raft.values import Batch
from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord
from kafka_compat.coordination.replicated_store.record_frames import unframe
from kafka_compat.quorum.control_records import voters_in
from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, crc_ok, read_header
from kafka_compat.storage.records.records import iter_body, records_body


class FetchedBatches(NamedTuple):
    """The whole batches of a response, as the Raft machine needs them, and their bytes."""

    batches: tuple[Batch, ...]
    data: bytes


class CommittedBatch(NamedTuple):
    """A batch of the log. `records` is empty for a control batch."""

    records: Sequence[AppliedRecord]
    end_offset: int
    epoch: int
    size_bytes: int


def read_fetched(data: bytes, next_offset: int) -> FetchedBatches:
    """Check the batches that a node fetched at `next_offset`. A response may end within a batch, as Kafka's
    responses do; the incomplete batch is dropped.

    Raises CorruptRecord if a CRC is wrong, if the offsets do not continue the log, or if epochs fall.
    """
    batches: list[Batch] = []
    position = 0
    epoch = -1
    view = memoryview(data)
    while position + HEADER_SIZE <= len(data):
        header = read_header(view, position)
        end = position + LOG_OVERHEAD + header.batch_length
        _check_header(header, next_offset, epoch)
        if end > len(data):
            break
        if not crc_ok(view, position, header):
            raise CorruptRecord(f"CRC mismatch in the batch of offset {header.base_offset} from the leader")
        voters = voters_in(header, view[position:end])
        batches.append(Batch(header.base_offset, header.last_offset, header.partition_leader_epoch, voters))
        next_offset = header.next_offset
        epoch = header.partition_leader_epoch
        position = end
    return FetchedBatches(tuple(batches), data if position == len(data) else data[:position])


def _check_header(header: BatchHeader, next_offset: int, epoch: int) -> None:
    if header.magic != 2 or header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptRecord(f"the batch at offset {next_offset} has an unknown format (magic {header.magic})")
    if header.base_offset != next_offset or header.last_offset_delta < 0:
        raise CorruptRecord(
            f"the leader sent offsets {header.base_offset} to {header.last_offset} where "
            f"{next_offset} was expected"
        )
    if header.partition_leader_epoch < max(epoch, 0):
        raise CorruptRecord(
            f"the batch of offset {header.base_offset} has epoch {header.partition_leader_epoch}, which is "
            f"below the epoch before it, {epoch}"
        )


def committed_batch(header: BatchHeader, batch: memoryview) -> CommittedBatch:
    """Return the records of a batch. Raises CorruptRecord or InvalidRecord if it is damaged."""
    records: tuple[AppliedRecord, ...] = ()
    if not header.is_control:
        body = iter_body(header, records_body(batch, header))
        records = tuple(unframe(record.offset, record.value or b"") for record in body)
    return CommittedBatch(records, header.next_offset, header.partition_leader_epoch, header.size_bytes)
