"""Decode the records in responses to a consumer's Fetch requests. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.storage.records.batch import LOG_OVERHEAD, BatchHeader, read_header
from kafka_compat.storage.records.kinds import ControlRecordType, TimestampType
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Header, Record, control_record_type, iter_records

if TYPE_CHECKING:
    from kafka_compat.protocol.buffers import Buffer

_LENGTH_POSITION = 8
_MAGIC_POSITION = 16


class Consumed(NamedTuple):
    """A consumed record. `timestamp_type` is None in the oldest record format, which has no timestamps. Only
    records of share groups have a delivery count.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType | None
    leader_epoch: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    delivery_count: int | None = None


def whole_batches(content: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the complete batches in a Fetch response. The last batch of a response may be incomplete."""
    view = memoryview(content)
    position = 0
    while position + _MAGIC_POSITION < len(view):
        length = int.from_bytes(view[position + _LENGTH_POSITION : position + LOG_OVERHEAD], "big")
        end = position + LOG_OVERHEAD + length
        if end > len(view):
            return
        batch = view[position:end]
        yield read_header(batch), batch
        position = end


class AbortedTransactions:
    """Aborted transactions in a Fetch response, as (producer ID, first offset). None means that no records
    of aborted transactions are skipped.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]] | None) -> None:
        self._waiting = sorted(aborted or (), key=lambda one: one[1], reverse=True)
        self._open: set[int] = set()

    def skip(self, header: BatchHeader, batch: memoryview) -> bool:
        """Return whether a consumer skips the batch, a marker or part of an aborted transaction. Call this
        method for each batch in order. Raises StorageError if a marker is corrupt.
        """
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            self._open.add(self._waiting.pop()[0])
        if header.is_control:
            record = next(iter_records(batch), None)
            if record is not None and control_record_type(record) is ControlRecordType.ABORT:
                self._open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._open


def consumed(
    topic: str, partition: int, content: Buffer, from_offset: int, aborted: Iterable[tuple[int, int]] | None
) -> Iterator[tuple[int, list[Consumed]]]:
    """Yield, for each batch, the offset after it and its records starting at `from_offset`. `aborted`
    contains the aborted transactions as (producer ID, first offset). Their records are skipped. If `aborted`
    is None, all records are yielded. Raises StorageError if a batch is corrupt.
    """
    transactions = AbortedTransactions(aborted)
    for header, batch in whole_batches(content):
        skipped = transactions.skip(header, batch)
        yield header.next_offset, [] if skipped else _records(topic, partition, header, batch, from_offset)


def _records(
    topic: str, partition: int, header: BatchHeader, batch: memoryview, from_offset: int
) -> list[Consumed]:
    kind = header.timestamp_type if header.magic else None
    found: Iterable[Record] = iter_records(batch) if header.magic > 1 else records_of(batch)
    return [
        Consumed(
            topic,
            partition,
            record.offset,
            record.timestamp,
            kind,
            header.partition_leader_epoch,
            record.key,
            record.value,
            record.headers,
        )
        for record in found
        if record.offset >= from_offset
    ]
