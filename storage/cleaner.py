"""Compaction: which records of a log stay, and what their batches look like afterwards. Pure.

Rules, as genuine Kafka has them
1. Of the records with the same key the last one stays, wherever the older ones are; a record without a key
   goes. What lies behind the end of the offset map is not looked at and stays.
2. A tombstone (a null value) and the marker of a transaction without records left stay for
   delete.retention.ms from the first cleaning that meets them so; that cleaning writes the time at which they
   are due into their batch (KIP-534).
3. Records of aborted transactions go. The marker of a transaction waits until all of its batches are gone.
4. Offsets never change: a batch that lost records keeps its base offset, its last offset and its sequence.
5. A batch stays without any record when it is a producer's last one, so that the producer can go on, or the
   last of what is cleaned, so that the log does not end early.
6. Messages of formats 0 and 1 stay as they are, or go; a compressed set stays while one of its messages must.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from storage.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    seal,
)
from storage.config import INT_MAX
from storage.errors import InvalidRecord
from storage.offset_map import OffsetMap
from storage.records import (
    ControlRecordType,
    encode_varint,
    join_batch,
    read_marker,
    read_varint,
    read_varlong,
    records_body,
)
from storage.txn_index import AbortedTxn


class Transactions:
    """Which batches belong to aborted transactions, and which markers are still needed, in one walk over a
    log.

    `aborted` are the entries of the log's transaction indexes. `kept` collects those whose marker must stay.
    """

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self.kept: list[AbortedTxn] = []
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}
        self._aborted_seen: set[int] = set()
        self._committed_seen: set[int] = set()

    def discards(self, header: BatchHeader, data: memoryview) -> bool:
        """Whether the records of this batch go: those of an aborted transaction, and a marker without any
        batch left.
        """
        if header.attributes & CONTROL_FLAG:
            return self._discards_marker(header, data)
        if not header.attributes & TRANSACTIONAL_FLAG:
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
            # A walk that starts behind the marker of a transaction never meets it.
            if entry.last_offset >= offset:
                self._aborted.setdefault(entry.producer_id, entry)


class RecordPlace(NamedTuple):
    """Where a record lies in the body of its batch, and what a cleaner must know of it."""

    start: int
    rest: int
    """Position behind the timestamp delta."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def record_places(body: bytes, count: int) -> list[RecordPlace]:
    """The records of an uncompressed body. Raises InvalidRecord when one does not fit."""
    places = []
    position = 0
    size = len(body)
    for _ in range(count):
        start = position
        length, position = read_varint(body, position)
        end = position + length
        if length < 0 or end > size:
            raise InvalidRecord(f"a record of {length} bytes does not fit into its batch")
        timestamp_delta, rest = read_varlong(body, position + 1)
        offset_delta, position = read_varint(body, rest)
        key_size, position = read_varint(body, position)
        key = None
        if key_size >= 0:
            key = body[position : position + key_size]
            position += key_size
        value_size, position = read_varint(body, position)
        if position + max(value_size, 0) > end:
            raise InvalidRecord("a key and a value do not fit into their record")
        places.append(RecordPlace(start, rest, end, timestamp_delta, offset_delta, key, value_size >= 0))
        position = end
    return places


class LastOfProducer(NamedTuple):
    """What a producer wrote last: its epoch, and the offset of its last record, -1 when a marker came
    since.
    """

    producer_epoch: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class CleaningPolicy:
    """What one cleaning obeys. `upper_bound` is the end of what it may clean; times in ms."""

    now_ms: int
    delete_retention_ms: int
    upper_bound: int
    producers: Mapping[int, LastOfProducer]


class BatchCleaner:
    """Takes the batches of a log in order and gives back what is left of each."""

    def __init__(self, offset_map: OffsetMap, policy: CleaningPolicy, transactions: Transactions) -> None:
        self._map = offset_map
        self._policy = policy
        self._transactions = transactions

    def clean(self, header: BatchHeader, data: memoryview) -> memoryview | bytes | None:
        """`data` itself, a batch with fewer or no records, or None."""
        discarded = self._transactions.discards(header, data)
        is_control = bool(header.attributes & CONTROL_FLAG)
        empty_marker = discarded and is_control
        if empty_marker:
            horizon_ms = header.delete_horizon_ms
            discarded = horizon_ms is not None and horizon_ms <= self._policy.now_ms
        if discarded or not header.record_count:
            return _without_records(header) if self._must_stay(header) else None
        body = records_body(data, header)
        places = record_places(body, header.record_count)
        kept = places if is_control else [place for place in places if self._stays(header, place)]
        if not kept:
            return _without_records(header) if self._must_stay(header) else None
        needs_horizon = header.delete_horizon_ms is None and (
            empty_marker or not all(place.has_value for place in kept)
        )
        if needs_horizon:
            due_ms = min(self._policy.now_ms + self._policy.delete_retention_ms, 2**63 - 1)
            return _with_horizon(header, body, kept, due_ms)
        if len(kept) == len(places):
            return data
        return join_batch(_shrunk(header, kept), b"".join([body[place.start : place.end] for place in kept]))

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.next_offset == self._policy.upper_bound:
            return True
        last = self._policy.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return bool(header.attributes & CONTROL_FLAG) and header.producer_epoch == last.producer_epoch

    def _stays(self, header: BatchHeader, place: RecordPlace) -> bool:
        offset = header.base_offset + place.offset_delta
        if offset > self._map.latest_offset:
            return True
        if place.key is None or offset < self._map.get(place.key):
            return False
        if place.has_value:
            return True
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is None or self._policy.now_ms < horizon_ms

    def keeps_legacy(self, offset: int, key: bytes | None, has_value: bool, tombstones_stay: bool) -> bool:
        """Whether a message of an old format stays, whose tombstones go by the age of their segment."""
        if offset > self._map.latest_offset:
            return True
        if key is None or offset < self._map.get(key):
            return False
        return has_value or tombstones_stay


def _without_records(header: BatchHeader) -> bytes:
    batch = bytearray(
        HEADER.pack(
            *header._replace(
                batch_length=HEADER_SIZE - LOG_OVERHEAD,
                attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG),
                base_timestamp=NO_TIMESTAMP,
                record_count=0,
            )
        )
    )
    seal(batch)
    return bytes(batch)


def _shrunk(header: BatchHeader, kept: Sequence[RecordPlace]) -> BatchHeader:
    """The header of a batch that has only the `kept` records left."""
    max_timestamp = header.max_timestamp
    if not header.attributes & TIMESTAMP_TYPE_FLAG:
        max_timestamp = header.base_timestamp + max(place.timestamp_delta for place in kept)
    return header._replace(max_timestamp=max_timestamp, record_count=len(kept))


def _with_horizon(header: BatchHeader, body: bytes, kept: Sequence[RecordPlace], due_ms: int) -> bytes:
    """The batch with a delete horizon, which takes the place of the base timestamp (KIP-534)."""
    moved_ms = header.base_timestamp - due_ms
    parts = []
    for place in kept:
        record = b"\0" + encode_varint(place.timestamp_delta + moved_ms) + body[place.rest : place.end]
        parts.append(encode_varint(len(record)))
        parts.append(record)
    shrunk = _shrunk(header, kept)._replace(
        base_timestamp=due_ms, attributes=header.attributes | DELETE_HORIZON_FLAG
    )
    return join_batch(shrunk, b"".join(parts))


class Sized(Protocol):
    """What grouping must know of a segment; all of it in bytes."""

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
    """Neighbours that become one segment: together within segment.bytes, segment.index.bytes, and the four
    bytes that an index has for an offset.
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
