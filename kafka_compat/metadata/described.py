"""Immutable metadata values for topics, partitions and brokers. Readers may keep references to them."""

from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.metadata.topic_names import is_internal

if TYPE_CHECKING:
    from uuid import UUID


class PartitionMetadata(NamedTuple):
    """A partition and its replicas. `leader` is -1 if there is no leader."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int = 0
    offline: tuple[int, ...] = ()
    """Replicas on failed disks of live brokers."""


class TopicMetadata(NamedTuple):
    """A topic and its partitions, in order of their numbers."""

    name: str
    topic_id: "UUID"
    partitions: tuple[PartitionMetadata, ...]

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)


class BrokerMetadata(NamedTuple):
    """A live broker. `endpoints` maps the name of each listener to (host, port)."""

    broker_id: int
    endpoints: dict[str, tuple[str, int]]
    rack: str | None = None
