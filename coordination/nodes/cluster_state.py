"""Values that describe the cluster: brokers, endpoints, topics and partition states."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID


class Endpoint(NamedTuple):
    """A listener of a broker: its name, address and security protocol."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerInfo(NamedTuple):
    """A registered broker. `epoch` is the czxid of the registration, which fences earlier registrations."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    features: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint with this listener name, or None if there is none."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class TopicState(NamedTuple):
    """The ID of a topic (None if it was created before Kafka 2.8), and the replicas of each partition, the
    preferred leader first. During a reassignment, some replicas are being added or removed.
    """

    name: str
    topic_id: "UUID | None"
    replicas: dict[int, tuple[int, ...]]
    adding_replicas: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    removing_replicas: Mapping[int, tuple[int, ...]] = MappingProxyType({})

    def with_partitions_of(self, found: "TopicState") -> "TopicState":
        """Return this state with the partitions that only `found` contains added, if the topic IDs match."""
        if found.topic_id != self.topic_id or found.replicas.keys() <= self.replicas.keys():
            return self
        return self._replace(replicas={**found.replicas, **self.replicas})


class PartitionState(NamedTuple):
    """The leader and the in-sync replicas of a partition.

    `leader` is -1 if there is none. `partition_epoch` is the version of the node that contains the state.
    `recovering` is true if the leader was elected uncleanly and has not recovered yet (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovering: bool = False
    partition_epoch: int = 0
