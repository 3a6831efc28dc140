"""What this broker knows of the cluster, for handlers to read without waiting.

Written by the topics of a broker that is alone, or by a controller's UpdateMetadata; everything in it is
immutable, so a reader may keep what it got.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafka_compat.metadata.topic_names import collision_key, is_internal, may_collide

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """Who holds a partition. `leader` is -1 while there is none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int = 0
    offline: tuple[int, ...] = ()
    """Replicas whose disk failed on a broker that lives."""


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic and its partitions, in the order of their numbers."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionMetadata, ...]

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """A living broker; `endpoints` maps a listener's name to (host, port)."""

    broker_id: int
    endpoints: dict[str, tuple[str, int]]
    rack: str | None = None


class MetadataCache:
    """Topics by name and by id, brokers by id."""

    def __init__(self, cluster_id: str, local_id: int) -> None:
        self.cluster_id = cluster_id
        self.local_id = local_id
        self.controller_id = -1
        self.topics: dict[str, TopicMetadata] = {}
        self.brokers: dict[int, BrokerMetadata] = {}
        self._names: dict[UUID, str] = {}
        self._by_collision_key: dict[str, str] = {}

    def reachable_leader(self, partition: PartitionMetadata) -> int | None:
        """The leader that clients can be sent to; None when there is none, or it is not registered."""
        return partition.leader if partition.leader in self.brokers else None

    def offline_replicas(self, partition: PartitionMetadata) -> list[int]:
        """The replicas whose broker is away, or whose disk failed."""
        away = partition.offline
        return [replica for replica in partition.replicas if replica not in self.brokers or replica in away]

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._names.get(topic_id)

    def colliding(self, name: str) -> str | None:
        """Another topic whose metrics would have the same names; None where there is none."""
        return self._by_collision_key.get(collision_key(name)) if may_collide(name) else None

    def put_topic(self, topic: TopicMetadata) -> None:
        self.remove_topic(topic.name)
        self.topics[topic.name] = topic
        self._names[topic.topic_id] = topic.name
        if may_collide(topic.name):
            self._by_collision_key[collision_key(topic.name)] = topic.name

    def remove_topic(self, name: str) -> None:
        old = self.topics.pop(name, None)
        if old is not None:
            self._names.pop(old.topic_id, None)
            self._by_collision_key.pop(collision_key(name), None)

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        known = self.topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            return None
        return known.partitions[partition]
