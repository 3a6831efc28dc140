"""Compaction of individual batches: choice of the records to keep, and rewriting of the batch. No I/O.

Rules, as in Apache Kafka
1. The last record of each key is kept, and all older ones are removed. A record without a key is removed.
   Records beyond the end of the offset map are kept without being examined.
2. A tombstone (null value), and the marker of a transaction that has no records left, are kept for
   delete.retention.ms after the first cleaning that finds them in this state. In that cleaning, the
   delete horizon is written into the batch (KIP-534).
3. Records of aborted transactions are removed. The marker of a transaction is kept until all batches of the
   transaction are removed.
4. Offsets never change: a batch whose records are removed keeps its base offset, last offset and sequence.
5. An empty batch is kept if it is the last batch of a producer, so that the producer can continue its
   sequence. It is also kept if it is the last batch of the cleaned range, so that the log end does not move.
6. Messages of formats 0 and 1 are kept unchanged or removed. A compressed message set is kept as long as any
   of its messages must be kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from kafka_compat.storage.compaction.offset_map import OffsetMap
from kafka_compat.storage.config import INT_MAX
from kafka_compat.storage.records import batch as batches
from kafka_compat.storage.records.batch import CONTROL_FLAG, DELETE_HORIZON_FLAG, BatchHeader
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.record_keys import RecordKeys, read_keys, timestamp_delta_at
from kafka_compat.storage.records.records import encode_varint, join_batch, read_marker, records_body
from kafka_compat.storage.segments.txn_index import AbortedTxn

FLAGS_MAX = 8 << 20
"""Maximum number of offsets whose last-of-key flags are computed at once. Each flag takes one byte."""


class Transactions:
    """Transaction state of one pass over a log: the batches of aborted transactions, and the markers to keep.

    `aborted` contains the entries of the log's transaction indexes. `kept` contains the entries whose markers
    must be kept.
    """

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self.kept: list[AbortedTxn] = []
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}
        self._aborted_seen: set[int] = set()
        self._committed_seen: set[int] = set()

    def discards(self, header: BatchHeader, data: memoryview) -> bool:
        """Whether to remove the records of this batch: it belongs to an aborted transaction, or is the marker
        of a transaction whose batches have all been removed.
        """
        if header.attributes & CONTROL_FLAG:
            return self._discards_marker(header, data)
        if not header.attributes & batches.TRANSACTIONAL_FLAG:
            return False
        self._advance(header.last_offset)
        if header.producer_id in self._aborted:
            self._aborted_seen.add(header.producer_id)
            return True
        self._committed_seen.add(header.producer_id)
        return False

    def _discards_marker(self, header: BatchHeader, data: memoryview) -> bool:
        self._advance(header.last_offset)
        if not header.record_count:
            return True
        marker = read_marker(data)
        if marker is None:
            return False
        producer_id = header.producer_id
        if marker.type is ControlRecordType.COMMIT:
            seen = producer_id in self._committed_seen
            self._committed_seen.discard(producer_id)
            return not seen
        entry = self._aborted.pop(producer_id, None)
        if entry is None or producer_id not in self._aborted_seen:
            return True
        self._aborted_seen.discard(producer_id)
        self.kept.append(entry)
        return False

    def _advance(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            entry = self._coming.pop()
            # Skip a transaction whose marker is before this offset: the scan would never reach the marker.
            if entry.last_offset >= offset:
                self._aborted.setdefault(entry.producer_id, entry)


class LastOfProducer(NamedTuple):
    """A producer's epoch and last record offset (-1 if the epoch contains only a transaction marker)."""

    producer_epoch: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class CleaningPolicy:
    """The parameters of one cleaning. `upper_bound` is the end of the cleanable range. Times are in ms."""

    now_ms: int
    delete_retention_ms: int
    upper_bound: int
    producers: Mapping[int, LastOfProducer]


class BatchCleaner:
    """Compaction of the batches of a log, in offset order."""

    def __init__(self, offset_map: OffsetMap, policy: CleaningPolicy, transactions: Transactions) -> None:
        self._map = offset_map
        self._policy = policy
        self._transactions = transactions
        self._flags = bytearray()
        self._flags_start = 0

    def clean(self, header: BatchHeader, data: memoryview) -> memoryview | bytes | None:
        """Return the cleaned batch (`data` itself if nothing changed), or None if the batch is removed."""
        discarded = self._transactions.discards(header, data)
        is_control = header.attributes & CONTROL_FLAG != 0
        empty_marker = discarded and is_control
        if empty_marker:
            horizon_ms = header.delete_horizon_ms
            discarded = horizon_ms is not None and horizon_ms <= self._policy.now_ms
        flags = None
        if not discarded and not is_control:
            flags = self._flags_of(header)
        if flags is not None:
            count = flags.count(1)
            discarded = not count
            if count == header.record_count != 0 and not self._map.may_hold_tombstones(header.base_offset):
                return data
        if discarded or not header.record_count:
            return _without_records(header) if self._must_stay(header) else None
        body = records_body(data, header)
        found = read_keys(header, body)
        kept: Sequence[int] = range(header.record_count)
        if not is_control:
            kept = self._kept(header, found, flags)
        if not kept:
            return _without_records(header) if self._must_stay(header) else None
        if header.delete_horizon_ms is None and (
            empty_marker or (found.tombstones and not set(found.tombstones).isdisjoint(kept))
        ):
            due_ms = min(self._policy.now_ms + self._policy.delete_retention_ms, 2**63 - 1)
            return _with_horizon(header, body, found, kept, due_ms)
        if len(kept) == header.record_count:
            return data
        bounds = found.bounds
        records = b"".join([body[bounds[index] : bounds[index + 1]] for index in kept])
        return join_batch(_shrunk(header, body, found, kept), records)

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.next_offset == self._policy.upper_bound:
            return True
        last = self._policy.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return bool(header.attributes & CONTROL_FLAG) and header.producer_epoch == last.producer_epoch

    def _flags_of(self, header: BatchHeader) -> bytearray | None:
        """Return one flag per offset of the batch: whether the record is the last one with its key. Return
        None if the map does not cover the whole batch.
        """
        first, count = header.base_offset, header.last_offset_delta + 1
        if count > FLAGS_MAX or not self._map.holds_all_of(first, header.last_offset):
            return None
        start = first - self._flags_start
        if start < 0 or start + count > len(self._flags):
            self._flags_start, start = first, 0
            self._flags = self._map.flags(first, min(FLAGS_MAX, self._map.latest_offset + 1 - first))
        return self._flags[start : start + count]

    def _kept(self, header: BatchHeader, found: RecordKeys, flags: bytearray | None) -> list[int]:
        mapped = self._map.latest_offset - header.base_offset
        gone = set(found.keyless)
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is not None and horizon_ms <= self._policy.now_ms:
            gone.update(found.tombstones)
        if flags is not None:
            kept = [index for index, delta in enumerate(found.offset_deltas) if flags[delta]]
        else:
            last_offset, base = self._map.get, header.base_offset
            kept = []
            for index, (key, delta) in enumerate(zip(found.keys, found.offset_deltas, strict=True)):
                last = last_offset(key)
                if last is None or last <= base + delta:
                    kept.append(index)
        if gone:
            kept = [index for index in kept if index not in gone or found.offset_deltas[index] > mapped]
        return kept

    def keeps_legacy(self, offset: int, key: bytes | None, has_value: bool, tombstones_stay: bool) -> bool:
        """Whether to keep a message in an old format. Without `tombstones_stay`, tombstones are removed."""
        if offset > self._map.latest_offset:
            return True
        last = self._map.get(key) if key is not None else offset + 1
        if last is not None and offset < last:
            return False
        return has_value or tombstones_stay


def _without_records(header: BatchHeader) -> bytes:
    emptied = header.replace(
        batch_length=batches.HEADER_SIZE - batches.LOG_OVERHEAD,
        attributes=header.attributes & ~(batches.COMPRESSION_MASK | DELETE_HORIZON_FLAG),
        base_timestamp=batches.NO_TIMESTAMP,
        record_count=0,
    )
    batch = bytearray(emptied.pack())
    batches.seal(batch)
    return bytes(batch)


def _shrunk(header: BatchHeader, body: bytes, found: RecordKeys, kept: Sequence[int]) -> BatchHeader:
    max_timestamp = header.max_timestamp
    if not header.attributes & batches.TIMESTAMP_TYPE_FLAG:
        deltas = (timestamp_delta_at(body, found.bounds[index])[0] for index in kept)
        max_timestamp = header.base_timestamp + max(deltas)
    return header.replace(max_timestamp=max_timestamp, record_count=len(kept))


def _with_horizon(
    header: BatchHeader, body: bytes, found: RecordKeys, kept: Sequence[int], due_ms: int
) -> bytes:
    """Set the delete horizon of the batch, in place of the base timestamp (KIP-534)."""
    moved_ms = header.base_timestamp - due_ms
    parts = []
    for index in kept:
        delta, rest = timestamp_delta_at(body, found.bounds[index])
        record = b"\0" + encode_varint(delta + moved_ms) + body[rest : found.bounds[index + 1]]
        parts.append(encode_varint(len(record)))
        parts.append(record)
    shrunk = _shrunk(header, body, found, kept).replace(
        base_timestamp=due_ms, attributes=header.attributes | DELETE_HORIZON_FLAG
    )
    return join_batch(shrunk, b"".join(parts))


class Sized(Protocol):
    """The offset range and file sizes of one segment, which determine how segments are grouped."""

    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def offset_index_bytes(self) -> int: ...
    @property
    def time_index_bytes(self) -> int: ...


S = TypeVar("S", bound=Sized)


def group_segments(segments: Iterable[S], segment_bytes: int, index_bytes: int) -> Iterator[list[S]]:
    """Group adjacent segments that fit into one segment. The limits are segment.bytes, segment.index.bytes,
    and the largest offset that fits into the four bytes of an index entry.
    """
    group: list[S] = []
    sizes = [0, 0, 0]
    for segment in segments:
        size = [segment.size_bytes, segment.offset_index_bytes, segment.time_index_bytes]
        together = [one + other for one, other in zip(sizes, size, strict=True)]
        fits = together[0] <= segment_bytes and max(together[1:]) <= index_bytes
        if group and not (fits and segment.end_offset - 1 - group[0].base_offset <= INT_MAX):
            yield group
            group, together = [], size
        group.append(segment)
        sizes = together
    if group:
        yield group
