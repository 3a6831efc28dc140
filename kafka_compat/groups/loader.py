"""Rebuilds the groups of one shard from its log. Pure: batches go in, groups come out.

A log that was not compacted yet holds many records of the same key, so only the last of each is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kafka_compat.groups.coordinator_log import ReplayedBatch
from kafka_compat.groups.model import GroupSnapshot, OffsetRecord, TopicPartition
from kafka_compat.groups.offsets import CommittedOffset
from kafka_compat.groups.records import decode_record
from kafka_compat.protocol.codec import MalformedRequest

Offsets = dict[TopicPartition, CommittedOffset]


class _Latest(NamedTuple):
    """The last value of a key, and the end of the batch that it came in."""

    value: bytes | None
    log_offset: int


class LoadedGroup:
    """`snapshot` is None for offsets that were committed without a group ever forming."""

    __slots__ = ("group_id", "offsets", "pending_transactional", "snapshot")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.snapshot: GroupSnapshot | None = None
        self.offsets: Offsets = {}
        self.pending_transactional: dict[int, Offsets] = {}


class Loader:
    """Feed it every batch of a shard in order, then let it decode until it is done, then take the groups.

    Offsets of a transaction count once its commit marker is read, and at the place in the log where they were
    written, so that a plain commit written after them wins (as in Kafka).
    """

    def __init__(self, on_malformed: Callable[[str], None]) -> None:
        self.record_count = 0
        self.groups: dict[str, LoadedGroup] = {}
        self._on_malformed = on_malformed
        self._latest: dict[bytes, _Latest] = {}
        self._open: dict[int, dict[bytes, _Latest]] = {}

    def feed(self, batch: ReplayedBatch) -> None:
        if batch.committed is not None:
            ended = self._open.pop(batch.producer_id, {})
            for key, latest in ended.items() if batch.committed else ():
                known = self._latest.get(key)
                if known is None or known.log_offset < latest.log_offset:
                    self._latest[key] = latest
            return
        into = self._latest if batch.producer_id == -1 else self._open.setdefault(batch.producer_id, {})
        for key, value in batch.records:
            into[key] = _Latest(value, batch.end_offset)
        self.record_count += len(batch.records)

    def decode(self) -> Iterator[None]:
        """Fills `groups`, pausing after each record."""
        for key, latest in self._latest.items():
            self._decode(key, latest, -1)
            yield
        for producer_id, pending in self._open.items():
            for key, latest in pending.items():
                self._decode(key, latest, producer_id)
                yield

    def _decode(self, key: bytes, latest: _Latest, producer_id: int) -> None:
        if latest.value is None:
            return
        try:
            record = decode_record(key, latest.value)
        except MalformedRequest as error:
            self._on_malformed(f"a record before offset {latest.log_offset} cannot be read: {error}")
            return
        if record is None or record.value is None:
            return
        group = self.groups.setdefault(record.group_id, LoadedGroup(record.group_id))
        if isinstance(record, OffsetRecord):
            offsets = group.offsets
            if producer_id != -1:
                offsets = group.pending_transactional.setdefault(producer_id, {})
            offsets[record.topic, record.partition] = CommittedOffset(record.value, latest.log_offset)
        else:
            group.snapshot = record.value
