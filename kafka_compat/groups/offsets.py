"""Offsets of one group: stored, pending in transactions, and expired.

Rules
- Only `replay` and `replay_end_marker` change the state. Offsets of open transactions are `pending`: they are
  not visible, but make their partitions unstable (KIP-447).
- Clients see the committed state. Deletions, expiry and later commits see the current state.
- An offset of a transaction becomes visible when its commit marker is replayed, unless a later offset was
  written outside transactions. A deletion outside transactions also deletes earlier offsets of open
  transactions.
- Offsets for partitions with an open transaction do not expire.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import NO_PRODUCER_ID
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineDict
from kafka_compat.groups.records import OffsetRecord
from kafka_compat.groups.requests import CONSUMER_PROTOCOL_TYPE, GroupState, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.metadata.described import TopicMetadata


class CommittedOffset(NamedTuple):
    """A committed offset, and the offset after the batch in `__consumer_offsets` that contains it."""

    value: OffsetAndMetadata
    log_offset: int


class GroupOffsets:
    __slots__ = ("_in_transaction", "pending", "stored")

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self.stored: TimelineDict[TopicPartition, CommittedOffset] = TimelineDict(snapshots)
        self.pending: TimelineDict[TopicPartition, Mapping[int, CommittedOffset]] = TimelineDict(snapshots)
        """The offsets of open transactions for each partition, by producer ID."""
        self._in_transaction: dict[int, set[TopicPartition]] = {}
        """The partitions for which each producer's open transaction has offsets."""

    def replay(self, record: OffsetRecord, log_offset: int, producer_id: int) -> None:
        """Apply a record. `log_offset` is the offset after its batch."""
        partition = (record.topic, record.partition)
        if producer_id != NO_PRODUCER_ID:
            self._replay_transactional(partition, record.value, log_offset, producer_id)
            return
        if record.value is None:
            self.stored.remove(partition)
            for other in self.pending.current.get(partition, ()):
                self._forget_pending(other, partition)
            self.pending.remove(partition)
            return
        known = self.stored.current.get(partition)
        if known is None or known.log_offset <= log_offset:
            # Skip an older record: loading may replay it after a newer one if their key versions differ.
            self.stored.set(partition, CommittedOffset(record.value, log_offset))

    def _replay_transactional(
        self, partition: TopicPartition, value: OffsetAndMetadata | None, log_offset: int, producer_id: int
    ) -> None:
        if value is None:
            if partition in self._in_transaction.get(producer_id, ()):
                self._forget_pending(producer_id, partition)
                self._take_pending(producer_id, partition)
            return
        of_others = self.pending.current.get(partition, {})
        self.pending.set(partition, {**of_others, producer_id: CommittedOffset(value, log_offset)})
        self._in_transaction.setdefault(producer_id, set()).add(partition)

    def _forget_pending(self, producer_id: int, partition: TopicPartition) -> None:
        partitions = self._in_transaction[producer_id]
        partitions.remove(partition)
        if not partitions:
            del self._in_transaction[producer_id]

    def _take_pending(self, producer_id: int, partition: TopicPartition) -> CommittedOffset:
        """Remove the offset of an open transaction, and return it."""
        offsets = dict(self.pending.current[partition])
        offset = offsets.pop(producer_id)
        if offsets:
            self.pending.set(partition, offsets)
        else:
            self.pending.remove(partition)
        return offset

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Discard a transaction's pending offsets or, if `committed`, publish those not yet superseded."""
        for partition in self._in_transaction.pop(producer_id, ()):
            offset = self._take_pending(producer_id, partition)
            known = self.stored.current.get(partition)
            if committed and (known is None or known.log_offset < offset.log_offset):
                self.stored.set(partition, offset)

    @property
    def is_empty(self) -> bool:
        """Whether neither the current nor the committed state contains offsets, visible or not."""
        return self.stored.is_empty and self.pending.is_empty

    def get(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return the committed offset for a partition."""
        committed = self.stored.get_committed(partition)
        return None if committed is None else committed.value

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether an offset for this partition is part of a transaction that is open, or whose end is
        not committed.
        """
        return partition in self.pending or self.pending.get_committed(partition) is not None

    def known(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the given partitions that have an offset, visible or not."""
        return [item for item in partitions if item in self.stored or item in self.pending]

    def of_topic(self, topic: "TopicMetadata", until_ms: int) -> list[TopicPartition]:
        """Return the partitions of a topic that have an offset, visible or not. Offsets with a different
        topic ID do not count, nor do offsets without one that were committed after `until_ms`.
        """
        # There may be thousands of groups, most of them with few offsets.
        stored, pending = self.stored.current, self.pending.current
        if len(topic.partitions) < len(stored) + len(pending):
            partitions = [(topic.name, each.partition) for each in topic.partitions]
        else:
            partitions = sorted(item for item in stored.keys() | pending.keys() if item[0] == topic.name)
        return [item for item in partitions if self._has_offset_of(item, topic.topic_id, until_ms)]

    def _has_offset_of(self, partition: TopicPartition, topic_id: "UUID", until_ms: int) -> bool:
        stored = self.stored.current.get(partition)
        offsets = [*self.pending.current.get(partition, {}).values(), *([] if stored is None else [stored])]
        return any(
            value.topic_id == topic_id or (value.topic_id is None and value.commit_timestamp_ms <= until_ms)
            for value, _ in offsets
        )

    def would_be_empty_without(self, partitions: Collection[TopicPartition]) -> bool:
        left = itertools.chain(self.stored.current, self.pending.current)
        return all(partition in partitions for partition in left)

    def expired(
        self,
        now_ms: int,
        retention_ms: int,
        *,
        state: GroupState,
        state_timestamp_ms: int,
        protocol_type: str | None,
        subscribed_topics: frozenset[str] | None,
    ) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired (offsets.retention.minutes, KIP-211).

        - In a group with members, offsets for subscribed topics do not expire; offsets for other topics
          expire by the age of the commit. If the subscription is unknown (not a consumer group, or
          rebalancing), nothing expires.
        - In a group without members, all offsets expire once the group has been empty for this time.
        - Commits without a group ("simple" commits) expire by the age of the commit.
        - An offset with its own expiry (OffsetCommit v2–4) expires at that time, with the same exceptions.
        """
        kept_topics: frozenset[str] = frozenset()
        empty_since_ms = -1
        if protocol_type is not None and state is GroupState.EMPTY:
            empty_since_ms = state_timestamp_ms
        elif (
            protocol_type == CONSUMER_PROTOCOL_TYPE
            and state is GroupState.STABLE
            and subscribed_topics is not None
        ):
            kept_topics = subscribed_topics
        elif protocol_type is not None:
            return []

        def has_expired(value: OffsetAndMetadata) -> bool:
            if value.expire_timestamp_ms != -1:
                return now_ms >= value.expire_timestamp_ms
            since_ms = value.commit_timestamp_ms if empty_since_ms == -1 else empty_since_ms
            return now_ms - since_ms >= retention_ms

        return [
            partition
            for partition, stored in self.stored.current.items()
            if partition[0] not in kept_topics and has_expired(stored.value) and partition not in self.pending
        ]

    def expired_without(
        self, subscribed: Collection[str], now_ms: int, retention_ms: int
    ) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired in a consumer group: those of topics to which no
        member subscribes expire by the age of the commit.
        """
        return [
            partition
            for partition, stored in self.stored.current.items()
            if partition[0] not in subscribed
            and now_ms - stored.value.commit_timestamp_ms >= retention_ms
            and partition not in self.pending
        ]
