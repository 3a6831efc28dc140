"""The committed offsets of one group: what is visible, what is on its way to the log, what has expired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka_compat.groups.model import (
    CONSUMER_PROTOCOL_TYPE,
    GroupState,
    OffsetAndMetadata,
    TopicPartition,
)


class CommittedOffset(NamedTuple):
    """A visible offset, and the end of the batch in `__consumer_offsets` that made it so."""

    value: OffsetAndMetadata
    log_offset: int


class GroupOffsets:
    """An offset is staged when its record is appended and becomes visible when the record is committed.

    `pending_transactional` has the offsets of transactions without an outcome yet, by producer id: they never
    show, but make their partitions unstable (KIP-447).
    """

    __slots__ = ("committed", "pending", "pending_transactional")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.pending: dict[TopicPartition, OffsetAndMetadata] = {}
        self.pending_transactional: dict[int, dict[TopicPartition, CommittedOffset]] = {}

    @property
    def any(self) -> bool:
        return bool(self.committed or self.pending or self.pending_transactional)

    def get(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self.committed.get(partition)
        return None if committed is None else committed.value

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether a commit of this partition is still on its way."""
        return partition in self.pending or any(
            partition in offsets for offsets in self.pending_transactional.values()
        )

    def stage(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.pending.update(offsets)

    def unstage(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Drop staged offsets, unless a later commit has taken their place."""
        for partition, value in offsets.items():
            if self.pending.get(partition) is value:
                del self.pending[partition]

    def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata], log_offset: int) -> None:
        self.unstage(offsets)
        for partition, value in offsets.items():
            committed = self.committed.get(partition)
            if committed is None or committed.log_offset < log_offset:
                self.committed[partition] = CommittedOffset(value, log_offset)

    def stage_transactional(self, producer_id: int, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        staged = self.pending_transactional.setdefault(producer_id, {})
        staged.update({partition: CommittedOffset(value, -1) for partition, value in offsets.items()})

    def settle_transactional(
        self, producer_id: int, offsets: dict[TopicPartition, OffsetAndMetadata], log_offset: int | None
    ) -> None:
        """The records of staged offsets are committed, below `log_offset`, or (None) are not."""
        staged = self.pending_transactional.get(producer_id, {})
        for partition, value in offsets.items():
            found = staged.get(partition)
            if found is None or found.value is not value:
                continue
            if log_offset is None:
                del staged[partition]
            else:
                staged[partition] = CommittedOffset(value, log_offset)
        if not staged:
            self.pending_transactional.pop(producer_id, None)

    def complete_transaction(self, producer_id: int, committed: bool) -> None:
        """The marker of a transaction is committed: its offsets show, where no later commit does, or go."""
        staged = self.pending_transactional.pop(producer_id, {})
        for partition, offset in staged.items() if committed else ():
            known = self.committed.get(partition)
            if offset.log_offset >= 0 and (known is None or known.log_offset < offset.log_offset):
                self.committed[partition] = offset

    def drop_transactional(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions are gone: open transactions have nothing to commit there."""
        for partition in partitions:
            for staged in self.pending_transactional.values():
                staged.pop(partition, None)

    @property
    def partitions(self) -> list[TopicPartition]:
        """All with an offset, visible or not."""
        return list(self.committed | self.pending)

    def select(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The latest offsets of these partitions, visible or not; what has none is left out."""
        latest = {partition: self.pending.get(partition) or self.get(partition) for partition in partitions}
        return {partition: value for partition, value in latest.items() if value is not None}

    def would_be_empty_without(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> bool:
        return not self.pending_transactional and all(
            partition in offsets for partition in (*self.committed, *self.pending)
        )

    def remove(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Forget these offsets, except where a later commit has changed the value."""
        for partition, value in offsets.items():
            if self.get(partition) is value:
                del self.committed[partition]

    def expired(
        self,
        now_ms: int,
        retention_ms: int,
        *,
        state: GroupState,
        state_timestamp_ms: int,
        protocol_type: str | None,
        subscribed_topics: frozenset[str] | None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What offsets.retention.minutes lets go (KIP-211).

        - A group with members keeps the offsets of the topics it subscribes to; others expire by the age of
          the commit. Where the subscription cannot be read (not a consumer group, or rebalancing) nothing
          expires.
        - A group whose members have all gone: all its offsets expire once it has been empty for that long.
        - Simple commits without a group: by the age of the commit.
        - An offset with an expiry of its own (OffsetCommit v2–4) expires then, under the same protection.
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
            return {}

        def has_expired(value: OffsetAndMetadata) -> bool:
            if value.expire_timestamp_ms != -1:
                return now_ms >= value.expire_timestamp_ms
            since_ms = value.commit_timestamp_ms if empty_since_ms == -1 else empty_since_ms
            return now_ms - since_ms >= retention_ms

        return {
            partition: committed.value
            for partition, committed in self.committed.items()
            if partition[0] not in kept_topics
            and partition not in self.pending
            and has_expired(committed.value)
        }
