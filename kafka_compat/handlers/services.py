"""What handlers may use of the broker that they belong to, one Protocol for each.

A handler says which it needs by the type of its context (`ctx: RequestContext[HasGroups]`, or a Protocol of
its own that joins several), so a reader sees what it can touch and a test hands in just that. A broker offers
all of them: `Services`, and in a cluster `ClusterServices`. Only for types: nothing imports it at run time,
since making that many Protocols takes 3 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_compat.clock import Clock
    from kafka_compat.cluster.controller_orders import ControllerOrders
    from kafka_compat.cluster.controller_service import ControllerService
    from kafka_compat.cluster.topics import Topics
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.groups.zookeeper_offsets import ZooKeeperOffsets
    from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache
    from kafka_compat.metadata.config_manager import ConfigManager
    from kafka_compat.metadata.producer_ids import ProducerIds
    from kafka_compat.network.connection import Connection
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.messages.fetch import FetchRequest
    from kafka_compat.quotas.client_quotas import ClientQuotas
    from kafka_compat.quotas.enforcement import Enforcement
    from kafka_compat.replication.counts import Counts
    from kafka_compat.replication.delayed_fetch import DelayedFetch
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_session import FetchPlan, FetchSessionCache
    from kafka_compat.replication.flusher import Flusher
    from kafka_compat.replication.log_mover import LogMover
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.security.acls.keeper import Keeper
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.scram_credentials import ScramCredentials
    from kafka_compat.security.tokens.keeper import Keeper as DelegationTokens
    from kafka_compat.storage.directories.log_dirs import LogDirs
    from kafka_compat.telemetry.service import ClientTelemetry
    from kafka_compat.transactions.coordinator import TransactionCoordinator
    from kafka_compat.transactions.local_markers import LocalMarkerWriter
    from kafka_compat.transactions.verification import Verifications

    NewFetch = Callable[[FetchContext, FetchRequest, FetchPlan], DelayedFetch]


# --- the broker itself


class HasClock(Protocol):
    @property
    def clock(self) -> Clock: ...


class HasAuthorizer(Protocol):
    @property
    def authorizer(self) -> Authorizer | None:
        """Who may do what; None: everybody everything."""


class HasConfig(Protocol):
    @property
    def config(self) -> BrokerConfig:
        """The broker's settings, dynamic ones included."""


class HasConfigs(Protocol):
    @property
    def configs(self) -> ConfigManager:
        """The settings of topics, brokers and loggers, to be read and changed."""


class HasServed(Protocol):
    @property
    def served(self) -> Mapping[ApiKey, tuple[int, int]]:
        """The APIs with the versions that clients are told of."""

    @property
    def finalized_features_epoch(self) -> int: ...


# --- topics and who leads them


class HasMetadata(Protocol):
    @property
    def metadata(self) -> MetadataCache: ...


class HasBrokers(HasMetadata, Protocol):
    """What tells clients of the brokers."""

    def address_for(self, broker: BrokerMetadata, connection: Connection) -> tuple[str, int]:
        """Where a client that came by `connection` finds `broker`."""

    async def await_metadata(self) -> None:
        """Wait for a while until this broker knows its cluster."""


class HasTopics(Protocol):
    @property
    def topics(self) -> Topics:
        """What makes, changes and drops topics."""


class HasQuotas(Protocol):
    @property
    def quotas(self) -> Enforcement | None:
        """What clients may use; None while nobody has a quota."""


class HasController(Protocol):
    @property
    def controller(self) -> ControllerService: ...


# --- logs


class HasReplicas(Protocol):
    @property
    def replicas(self) -> ReplicaManager: ...


class HasFetchSessions(Protocol):
    @property
    def fetch_sessions(self) -> FetchSessionCache: ...


class HasNewFetch(Protocol):
    @property
    def new_fetch(self) -> NewFetch:
        """Makes what answers a fetch."""


class HasCounts(Protocol):
    @property
    def counts(self) -> Counts | None:
        """What partitions count; None where nobody can ask."""


class HasLogDirs(Protocol):
    @property
    def log_dirs(self) -> LogDirs: ...


class HasFlusher(Protocol):
    @property
    def flusher(self) -> Flusher: ...


class HasLogMover(Protocol):
    @property
    def log_mover(self) -> LogMover: ...


# --- coordinators


class HasGroups(Protocol):
    @property
    def groups(self) -> GroupCoordinator: ...


class HasZooKeeperOffsets(Protocol):
    @property
    def zookeeper_offsets(self) -> ZooKeeperOffsets:
        """The positions of Kafka's oldest clients."""


class HasProducerIds(Protocol):
    @property
    def producer_ids(self) -> ProducerIds: ...


class HasTransactions(Protocol):
    @property
    def transactions(self) -> TransactionCoordinator: ...


class HasVerifications(Protocol):
    @property
    def verifications(self) -> Verifications:
        """Asks coordinators about transactions that come to a partition here."""


class HasMarkers(Protocol):
    @property
    def markers(self) -> LocalMarkerWriter:
        """Ends transactions in the partitions that this broker leads."""


# --- what is kept for those who ask


class HasClientQuotas(Protocol):
    @property
    def client_quotas(self) -> ClientQuotas: ...


class HasScramCredentials(Protocol):
    @property
    def scram_credentials(self) -> ScramCredentials: ...


class HasAcls(HasAuthorizer, Protocol):
    @property
    def acls(self) -> Keeper | None:
        """What the authorizer decides by; None without one."""


class HasDelegationTokens(Protocol):
    @property
    def delegation_tokens(self) -> DelegationTokens | None:
        """None where there are none."""


class HasTelemetry(Protocol):
    @property
    def telemetry(self) -> ClientTelemetry:
        """What clients push of their metrics. Only for handlers that are declared so."""


# --- all of them


class Services(
    HasAcls,
    HasBrokers,
    HasClientQuotas,
    HasClock,
    HasConfig,
    HasConfigs,
    HasController,
    HasDelegationTokens,
    HasFetchSessions,
    HasFlusher,
    HasGroups,
    HasLogDirs,
    HasLogMover,
    HasMarkers,
    HasProducerIds,
    HasQuotas,
    HasReplicas,
    HasScramCredentials,
    HasServed,
    HasTelemetry,
    HasZooKeeperOffsets,
    HasTopics,
    HasTransactions,
    HasVerifications,
    Protocol,
):
    """Of every broker."""


# --- joined for handlers that are compiled: mypyc takes no class within `if TYPE_CHECKING`


class ProduceServices(HasClock, HasConfig, HasCounts, HasMetadata, HasReplicas, HasVerifications, Protocol):
    """What Produce uses."""


class FetchServices(
    HasClock, HasConfig, HasFetchSessions, HasMetadata, HasNewFetch, HasQuotas, HasReplicas, Protocol
):
    """What Fetch uses."""


class MetadataServices(HasBrokers, HasConfig, HasQuotas, HasTopics, Protocol):
    """What Metadata uses."""


class ConfigResourcesServices(HasConfigs, HasMetadata, Protocol):
    """What ListConfigResources uses."""


class ApiVersionsServices(HasConfig, HasServed, Protocol):
    """What ApiVersions uses."""


class EndTxnServices(HasProducerIds, HasTransactions, Protocol):
    """What EndTxn uses."""


class AddPartitionsToTxnServices(HasMetadata, HasTransactions, Protocol):
    """What AddPartitionsToTxn uses."""


# --- a broker of a cluster


class Member(Protocol):
    """The part of a broker in its cluster."""

    @property
    def service(self) -> ControllerService:
        """Who the controller is, and this broker as it."""

    @property
    def orders(self) -> ControllerOrders:
        """What obeys the controller's requests."""

    @property
    def store(self) -> MetadataStore: ...


class ClusterServices(Protocol):
    """What a broker of a cluster has for other brokers."""

    @property
    def membership(self) -> Member: ...
