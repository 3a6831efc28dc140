"""A share coordinator in memory, for share groups without a broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafka_compat.config.group import ShareGroupConfig, ShareGroupLimits
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.cluster_topics import ClusterTopics
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.share_coordinator.persister import (
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)


class MemoryPersister:
    """The states of share-partitions. With `hold`, nothing is done until `release`; with `refuse`, all calls
    fail.
    """

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, StateSummary] = {}
        self.hold = False
        self.refuse: ErrorCode | None = None
        self.waiting: list[Callable[[], None]] = []

    def _carry_out(self, call: Callable[[], None]) -> None:
        if self.hold:
            self.waiting.append(call)
        else:
            call()

    def release(self) -> None:
        """Carry out all calls that are held."""
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        def call() -> None:
            if self.refuse is None:
                self.states[key] = StateSummary(state_epoch, 0, start_offset, 0)
            done(self.refuse or ErrorCode.NONE)

        self._carry_out(call)

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        done: Callable[[ErrorCode, StoredState | None], None],
    ) -> None:
        raise NotImplementedError

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Callable[[ErrorCode], None],
    ) -> None:
        raise NotImplementedError

    def delete(self, key: SharePartitionKey, done: Callable[[ErrorCode], None]) -> None:
        def call() -> None:
            if self.refuse is None:
                self.states.pop(key, None)
            done(self.refuse or ErrorCode.NONE)

        self._carry_out(call)

    def read_summary(
        self, key: SharePartitionKey, done: Callable[[ErrorCode, StateSummary | None], None]
    ) -> None:
        self._carry_out(lambda: done(self.refuse or ErrorCode.NONE, self.states.get(key)))


def share_groups_of(
    metadata: MetadataCache,
    persister: MemoryPersister | None = None,
    *,
    assignment_interval_ms: int = 0,
    size_max: int = 1_000,
) -> ShareGroups:
    """Return what share groups have in common, for the topics in `metadata`."""
    topics = ClusterTopics(metadata)
    metadata.feed.subscribe(topics.on_metadata)
    found = persister or MemoryPersister()
    settings = ShareGroupConfig(assignment_interval_ms=assignment_interval_ms)
    limits = ShareGroupLimits(size_max=size_max)
    return ShareGroups(topics, topics.partition_counts, lambda _: settings, lambda: limits, lambda: found)


def no_share_groups() -> ShareGroups:
    """Return what share groups have in common, without topics."""
    return share_groups_of(MetadataCache("cluster", 1))
