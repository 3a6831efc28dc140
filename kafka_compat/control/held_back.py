"""Followers that do not fetch some of their partitions, because a test says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_fetcher import ReplicaFetcher
    from kafka_compat.replication.replica_manager import Fetching


class HeldBack:
    """What fetches for a broker's partitions, but for some of them; see `replica_manager.Fetching`."""

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching
        self._held: dict[tuple[str, int], Callable[[], None]] = {}
        """With what is to be done when they are let go."""

    def hold(self, partition: Partition) -> None:
        """Do not fetch for it, whatever the controller says."""
        topic_id = partition.log.topic_id
        assert topic_id is not None
        self._fetching.stop(partition)
        self._held[partition.topic, partition.partition] = lambda: self._go_on(partition, topic_id)

    def let_go(self, topic: str, partition: int) -> None:
        """Fetch for it again."""
        go_on = self._held.pop((topic, partition), None)
        if go_on is not None:
            go_on()

    def clear(self) -> None:
        """Fetch for all."""
        for key in list(self._held):
            self.let_go(*key)

    def _go_on(self, partition: Partition, topic_id: UUID) -> None:
        if not partition.is_leader and partition.leader_id >= 0:
            self._fetching.start(partition, topic_id)

    def start(self, partition: Partition, topic_id: UUID) -> None:
        key = (partition.topic, partition.partition)
        if key in self._held:
            self._fetching.stop(partition)
            self._held[key] = lambda: self._go_on(partition, topic_id)
        else:
            self._fetching.start(partition, topic_id)

    def stop(self, partition: Partition) -> None:
        self._fetching.stop(partition)

    def running(self) -> Sequence[tuple[int, int, ReplicaFetcher]]:
        return self._fetching.running()
