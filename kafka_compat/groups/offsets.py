"""Offsets of one group: committed, staged, pending in transactions, and expired.

Rules
- Only `replay` and `replay_end_marker` change the state that mirrors the log: `committed`, and for each
  producer the offsets of its open transaction (`pending`), which are not visible but make their partitions
  unstable (KIP-447).
- A commit is staged from its append until its record is committed, or its client gets an error. Staged
  partitions are also unstable, and their offsets do not expire.
- An offset of a transaction becomes visible when its commit marker is replayed, unless a later offset was
  written outside transactions. A deletion outside transactions also deletes earlier offsets of open
  transactions.
- Offsets with a commit in progress or an open transaction do not expire.
"""

import itertools
from collections.abc import Collection, Iterable
from typing import NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import NO_PRODUCER_ID
from kafka_compat.groups.records import OffsetRecord
from kafka_compat.groups.requests import CONSUMER_PROTOCOL_TYPE, GroupState, OffsetAndMetadata, TopicPartition


class CommittedOffset(NamedTuple):
    """A committed offset, and the offset after the batch in `__consumer_offsets` that contains it."""

    value: OffsetAndMetadata
    log_offset: int


_Staged = dict[TopicPartition, int]
"""Number of commits in progress for each partition."""


class GroupOffsets:
    __slots__ = ("_staged", "_staged_in_transactions", "committed", "pending")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.pending: dict[int, dict[TopicPartition, CommittedOffset]] = {}
        self._staged: _Staged = {}
        self._staged_in_transactions: _Staged = {}

    def replay(self, record: OffsetRecord, log_offset: int, producer_id: int) -> None:
        """Apply a committed record. `log_offset` is the offset after its batch."""
        partition = (record.topic, record.partition)
        if producer_id != NO_PRODUCER_ID:
            self._replay_transactional(partition, record.value, log_offset, producer_id)
            return
        if record.value is None:
            self.committed.pop(partition, None)
            self._forget_pending(partition)
            return
        known = self.committed.get(partition)
        if known is None or known.log_offset <= log_offset:
            # Skip an older record: loading may replay it after a newer one if their key versions differ.
            self.committed[partition] = CommittedOffset(record.value, log_offset)

    def _replay_transactional(
        self, partition: TopicPartition, value: OffsetAndMetadata | None, log_offset: int, producer_id: int
    ) -> None:
        pending = self.pending.setdefault(producer_id, {})
        if value is None:
            pending.pop(partition, None)
        else:
            pending[partition] = CommittedOffset(value, log_offset)

    def _forget_pending(self, partition: TopicPartition) -> None:
        for producer_id, pending in list(self.pending.items()):
            pending.pop(partition, None)
            if not pending:
                del self.pending[producer_id]

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Discard a transaction's pending offsets or, if `committed`, publish those not yet superseded."""
        pending = self.pending.pop(producer_id, {})
        for partition, offset in pending.items() if committed else ():
            known = self.committed.get(partition)
            if known is None or known.log_offset < offset.log_offset:
                self.committed[partition] = offset

    def stage(self, partitions: Iterable[TopicPartition], *, in_transaction: bool) -> None:
        staged = self._staged_in_transactions if in_transaction else self._staged
        for partition in partitions:
            staged[partition] = staged.get(partition, 0) + 1

    def unstage(self, partitions: Iterable[TopicPartition], *, in_transaction: bool) -> None:
        staged = self._staged_in_transactions if in_transaction else self._staged
        for partition in partitions:
            count = staged.pop(partition)
            if count > 1:
                staged[partition] = count - 1

    @property
    def any(self) -> bool:
        return bool(self.committed or self.pending or self._staged or self._staged_in_transactions)

    def get(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self.committed.get(partition)
        return None if committed is None else committed.value

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether a commit for this partition is in progress or part of an open transaction."""
        return (
            partition in self._staged
            or partition in self._staged_in_transactions
            or any(partition in pending for pending in self.pending.values())
        )

    @property
    def partitions(self) -> list[TopicPartition]:
        """All partitions with a visible offset or a non-transactional commit in progress."""
        return list(dict.fromkeys((*self.committed, *self._staged)))

    def known(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the given partitions that have an offset, visible or not."""
        return [item for item in partitions if item in self.committed or self.is_unstable(item)]

    def would_be_empty_without(self, partitions: Collection[TopicPartition]) -> bool:
        left = itertools.chain(
            self.committed, self._staged, self._staged_in_transactions, *self.pending.values()
        )
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
            for partition, committed in self.committed.items()
            if partition[0] not in kept_topics
            and has_expired(committed.value)
            and not self.is_unstable(partition)
        ]
