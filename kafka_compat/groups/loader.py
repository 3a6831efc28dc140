"""Rebuilds the groups of one shard from its log. Pure: batches go in, groups come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kafka_compat.groups.coordinator_log import ReplayedBatch
from kafka_compat.groups.model import GroupSnapshot, OffsetRecord, TopicPartition
from kafka_compat.groups.offsets import CommittedOffset
from kafka_compat.groups.records import decode_record
from kafka_compat.protocol.codec import MalformedRequest

Offsets = dict[TopicPartition, CommittedOffset]


class LoadedGroup(NamedTuple):
    """`snapshot` is None for offsets that were committed without a group ever forming."""

    group_id: str
    snapshot: GroupSnapshot | None
    offsets: Offsets
    pending_transactional: dict[int, Offsets]


class Loader:
    """Feed it every batch of a shard in order, then take the groups.

    Offsets of a transaction count once its commit marker is read, and at the place in the log where they
    were written, so that a plain commit written after them wins (as in Kafka).
    """

    def __init__(self, on_malformed: Callable[[str], None]) -> None:
        self.record_count = 0
        self._on_malformed = on_malformed
        self._snapshots: dict[str, GroupSnapshot] = {}
        self._offsets: dict[str, Offsets] = {}
        self._open: dict[int, dict[str, Offsets]] = {}

    def feed(self, batch: ReplayedBatch) -> None:
        if batch.committed is not None:
            self._end_transaction(batch.producer_id, committed=batch.committed)
            return
        into = self._offsets if batch.producer_id == -1 else self._open.setdefault(batch.producer_id, {})
        for key, value in batch.records:
            self.record_count += 1
            try:
                record = decode_record(key, value)
            except MalformedRequest as error:
                self._on_malformed(f"a record before offset {batch.end_offset} cannot be read: {error}")
                continue
            if record is None:
                continue
            if isinstance(record, OffsetRecord):
                offsets = into.setdefault(record.group_id, {})
                if record.value is None:
                    offsets.pop((record.topic, record.partition), None)
                else:
                    offsets[record.topic, record.partition] = CommittedOffset(record.value, batch.end_offset)
            elif record.value is None:
                self._snapshots.pop(record.group_id, None)
            else:
                self._snapshots[record.group_id] = record.value

    def _end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for group_id, pending in self._open.pop(producer_id, {}).items():
            if not committed:
                continue
            offsets = self._offsets.setdefault(group_id, {})
            for partition, offset in pending.items():
                if partition not in offsets or offsets[partition].log_offset < offset.log_offset:
                    offsets[partition] = offset

    def groups(self) -> Iterator[LoadedGroup]:
        """Every group with members, a generation, or offsets."""
        pending_by_group: dict[str, dict[int, Offsets]] = {}
        for producer_id, by_group in self._open.items():
            for group_id, offsets in by_group.items():
                if offsets:
                    pending_by_group.setdefault(group_id, {})[producer_id] = offsets
        for group_id in self._snapshots | self._offsets | pending_by_group:
            group = LoadedGroup(
                group_id,
                self._snapshots.get(group_id),
                self._offsets.get(group_id, {}),
                pending_by_group.get(group_id, {}),
            )
            if group.snapshot is not None or group.offsets or group.pending_transactional:
                yield group
