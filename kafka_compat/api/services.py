"""What handlers may use of the broker that they belong to.

Only for types: nothing imports it at run time. A test hands in what a handler uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.clock import Clock
    from kafka_compat.cluster.controller_orders import ControllerOrders
    from kafka_compat.cluster.controller_service import ControllerService
    from kafka_compat.cluster.topics import Topics
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.groups.zookeeper_offsets import ZooKeeperOffsets
    from kafka_compat.long_work import LongWork
    from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache
    from kafka_compat.metadata.config_manager import ConfigManager
    from kafka_compat.metadata.producer_ids import ProducerIds
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.quotas.client_quotas import ClientQuotas
    from kafka_compat.quotas.enforcement import Enforcement
    from kafka_compat.replication.fetch_session import FetchSessionCache
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


class Services(Protocol):
    """Of every broker."""

    # --- the broker itself

    @property
    def clock(self) -> Clock: ...

    @property
    def long_work(self) -> LongWork:
        """By what long work shares the event loop."""

    @property
    def authorizer(self) -> Authorizer | None:
        """Who may do what; None: everybody everything."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings, dynamic ones included."""

    @property
    def configs(self) -> ConfigManager:
        """The settings of topics, brokers and loggers, to be read and changed."""

    @property
    def served(self) -> Mapping[ApiKey, tuple[int, int]]:
        """The APIs with the versions that clients are told of."""

    @property
    def finalized_features_epoch(self) -> int: ...

    # --- topics and who leads them

    @property
    def metadata(self) -> MetadataCache: ...

    def address_for(self, broker: BrokerMetadata, caller: Caller) -> tuple[str, int]:
        """Where a caller finds `broker`."""

    async def await_metadata(self) -> None:
        """Wait for a while until this broker knows its cluster."""

    @property
    def topics(self) -> Topics:
        """What makes, changes and drops topics."""

    @property
    def quotas(self) -> Enforcement | None:
        """What clients may use; None while nobody has a quota."""

    @property
    def controller(self) -> ControllerService: ...

    # --- logs

    @property
    def replicas(self) -> ReplicaManager: ...

    @property
    def fetch_sessions(self) -> FetchSessionCache: ...

    @property
    def log_dirs(self) -> LogDirs: ...

    @property
    def flusher(self) -> Flusher: ...

    @property
    def log_mover(self) -> LogMover: ...

    # --- coordinators

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def zookeeper_offsets(self) -> ZooKeeperOffsets:
        """The positions of Kafka's oldest clients."""

    @property
    def producer_ids(self) -> ProducerIds: ...

    @property
    def transactions(self) -> TransactionCoordinator: ...

    @property
    def verifications(self) -> Verifications:
        """Asks coordinators about transactions that come to a partition here."""

    @property
    def markers(self) -> LocalMarkerWriter:
        """Ends transactions in the partitions that this broker leads."""

    # --- what is kept for those who ask

    @property
    def client_quotas(self) -> ClientQuotas: ...

    @property
    def scram_credentials(self) -> ScramCredentials: ...

    @property
    def acls(self) -> Keeper | None:
        """What the authorizer decides by; None without one."""

    @property
    def delegation_tokens(self) -> DelegationTokens | None:
        """None where there are none."""

    @property
    def telemetry(self) -> ClientTelemetry:
        """What clients push of their metrics. Only for handlers that are declared so."""

    # --- its cluster

    @property
    def membership(self) -> Member: ...
