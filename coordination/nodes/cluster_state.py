"""Values that describe the cluster: brokers, endpoints, topics and partition states."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker listens: a named listener with its security protocol."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A living broker. `epoch` is the czxid of its registration, which fences what an earlier life of it
    sent."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    features: dict[str, tuple[int, int]] = field(default_factory=dict)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where it listens under that listener's name."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic's id (None: from before Kafka 2.8) and, for each partition, the brokers that hold it, the
    preferred leader first. During a reassignment some of them are being added or removed.
    """

    name: str
    topic_id: UUID | None
    replicas: dict[int, tuple[int, ...]]
    adding_replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    removing_replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def with_partitions_of(self, found: TopicState) -> TopicState:
        """This, and those partitions of the topic as it was `found` that are not in this: somebody has added
        them meanwhile.
        """
        if found.topic_id != self.topic_id or found.replicas.keys() <= self.replicas.keys():
            return self
        return replace(self, replicas={**found.replicas, **self.replicas})


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who leads a partition and who is in sync with it.

    `leader` is -1 when there is none; `partition_epoch` is the version of the node that holds the state;
    `recovering` tells of a leader elected uncleanly that has not recovered yet (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovering: bool = False
    partition_epoch: int = 0
