"""The cluster as known to the brokers of this process during one scrape or web console request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafka_compat.api.request_counts import RequestCounts
    from kafka_compat.broker import Broker
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.cluster.remote_partitions import RemotePartitions
    from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.metadata.cache import BrokerMetadata, PartitionMetadata
    from kafka_compat.network.server import Server
    from kafka_compat.replication.counts import Counts
    from kafka_compat.replication.partition import Partition
    from kafka_compat.upkeep.log_cleaner import LogCleaner


class NoBrokerRuns(Exception):
    """Raised if all brokers of this process are stopping or restarting."""


class RunningBroker(NamedTuple):
    """A running broker of this process, with its counters."""

    services: BrokerServices
    server: Server
    requests: RequestCounts
    partitions: Counts
    cleaner: LogCleaner | None
    """The log cleaner, or None until a log can be compacted."""

    @property
    def served(self) -> Iterable[int]:
        """Keys of the APIs that the broker supports."""
        return self.services.served


def running_brokers(brokers: Sequence[Broker]) -> list[RunningBroker]:
    """Return the running brokers, with their counters."""
    return [
        RunningBroker(each.services, each.server, each.calls.counts, each.services.counts, each.cleaner)
        for each in brokers
        if each.is_running
    ]


def zookeeper_of(services: BrokerServices) -> ZooKeeperMetadataStore | None:
    """Return a broker's current ZooKeeper session, or None if it has none."""
    if not services.config.str("zookeeper.connect"):
        return None
    from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore

    session = getattr(services.store, "session", None)
    return session if isinstance(session, ZooKeeperMetadataStore) else None


class ClusterView:
    """View of the cluster for one scrape or web console request."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        """Create a view. Raises NoBrokerRuns if no broker is running."""
        self.services: list[BrokerServices] = [each.services for each in brokers if each.is_running]
        if not self.services:
            raise NoBrokerRuns
        self.calls = {each.broker_id: each.calls for each in brokers if each.is_running}
        """Access to each broker's APIs, by broker ID."""
        self.brokers = running_brokers(brokers)
        first = self.services[0]
        # Prefer the controller's view, because the controller learns of changes first.
        known = next((each for each in self.services if each.metadata.controller_id == each.broker_id), first)
        self.metadata = known.metadata
        self.long_work = first.long_work
        self.now_ms = first.clock.now_ms
        self.monotonic_ms = first.clock.monotonic_ms
        self.listener = first.config.listeners[0].name

    def address(self, broker: BrokerMetadata) -> tuple[str, int] | None:
        """Return a broker's advertised host and port, preferably for the listener with the same name as this
        process's first listener, or None if the broker has no endpoints.
        """
        return broker.endpoints.get(self.listener) or next(iter(broker.endpoints.values()), None)

    def remote_partitions(self) -> RemotePartitions | None:
        """Return the client for leaders in other processes, or None for a standalone broker."""
        return self.services[0].membership.remote_partitions()

    def zookeepers(self) -> Iterator[ZooKeeperMetadataStore]:
        """Yield the ZooKeeper sessions of this process."""
        for services in self.services:
            found = zookeeper_of(services)
            if found is not None:
                yield found

    def coordinators(self) -> Iterator[GroupCoordinator]:
        """Yield the group coordinators of this process."""
        for services in self.services:
            groups = services.coordinators.groups.made
            if groups is not None:
                yield groups

    def led(self, topic: str, known: PartitionMetadata) -> Partition | None:
        """Return the partition if a broker of this process leads it, otherwise None."""
        here = (services.replicas.get(topic, known.partition) for services in self.services)
        # Prefer the latest leader epoch: an isolated broker may not know that another broker became leader.
        leading = [
            held
            for held in here
            if held is not None and held.is_leader and held.leader_epoch >= known.leader_epoch
        ]
        return max(leading, key=lambda held: held.leader_epoch, default=None)

    def held(self, topic: str, known: PartitionMetadata) -> Partition | None:
        """Return a replica of a partition, preferably the leader, or None if this process has no replica."""
        found = None
        for services in self.services:
            held = services.replicas.get(topic, known.partition)
            if held is not None and (found is None or (held.is_leader and not found.is_leader)):
                found = held
        return found
