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


class CommittedOffset(NamedTuple):
    """A committed offset, and the offset after the batch in `__consumer_offsets` that contains it."""

    value: OffsetAndMetadata
    log_offset: int


Offsets = Mapping[TopicPartition, CommittedOffset]


class GroupOffsets:
    __slots__ = ("pending", "stored")

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self.stored: TimelineDict[TopicPartition, CommittedOffset] = TimelineDict(snapshots)
        self.pending: TimelineDict[int, Offsets] = TimelineDict(snapshots)
        """The offsets of each producer's open transaction."""

    def replay(self, record: OffsetRecord, log_offset: int, producer_id: int) -> None:
        """Apply a record. `log_offset` is the offset after its batch."""
        partition = (record.topic, record.partition)
        if producer_id != NO_PRODUCER_ID:
            self._replay_transactional(partition, record.value, log_offset, producer_id)
            return
        if record.value is None:
            self.stored.remove(partition)
            for other in list(self.pending):
                self._remove_pending(other, partition)
            return
        known = self.stored.current.get(partition)
        if known is None or known.log_offset <= log_offset:
            # Skip an older record: loading may replay it after a newer one if their key versions differ.
            self.stored.set(partition, CommittedOffset(record.value, log_offset))

    def _replay_transactional(
        self, partition: TopicPartition, value: OffsetAndMetadata | None, log_offset: int, producer_id: int
    ) -> None:
        if value is None:
            self._remove_pending(producer_id, partition)
            return
        offsets = dict(self.pending.current.get(producer_id, {}))
        offsets[partition] = CommittedOffset(value, log_offset)
        self.pending.set(producer_id, offsets)

    def _remove_pending(self, producer_id: int, partition: TopicPartition) -> None:
        offsets = dict(self.pending.current.get(producer_id, {}))
        if offsets.pop(partition, None) is None:
            return
        if offsets:
            self.pending.set(producer_id, offsets)
        else:
            self.pending.remove(producer_id)

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Discard a transaction's pending offsets or, if `committed`, publish those not yet superseded."""
        pending = self.pending.current.get(producer_id, {})
        self.pending.remove(producer_id)
        for partition, offset in pending.items() if committed else ():
            known = self.stored.current.get(partition)
            if known is None or known.log_offset < offset.log_offset:
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
        return self._is_pending(partition) or any(
            partition in offsets for offsets in self.pending.committed.values()
        )

    def _is_pending(self, partition: TopicPartition) -> bool:
        return any(partition in offsets for offsets in self.pending.current.values())

    def known(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the given partitions that have an offset, visible or not."""
        return [item for item in partitions if item in self.stored or self._is_pending(item)]

    def of_topic(self, partitions: Iterable[TopicPartition], topic_id: "UUID") -> list[TopicPartition]:
        """Return the given partitions that have an offset, visible or not, unless all their offsets were
        stored under a different topic ID.
        """
        everywhere = (self.stored.current, *self.pending.current.values())
        return [
            item
            for item in partitions
            if any(
                item in offsets and offsets[item].value.topic_id in (None, topic_id) for offsets in everywhere
            )
        ]

    def would_be_empty_without(self, partitions: Collection[TopicPartition]) -> bool:
        left = itertools.chain(self.stored.current, *self.pending.current.values())
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
            if partition[0] not in kept_topics
            and has_expired(stored.value)
            and not self._is_pending(partition)
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
            and not self._is_pending(partition)
        ]
