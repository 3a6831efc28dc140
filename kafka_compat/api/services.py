"""Types of the broker's services that handlers may use.

This module is imported only for type checking. Tests pass only the services that a handler uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kafka_compat.api.listener_context import ListenerServices

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.cluster.controller_service import ControllerService
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.cluster.topics import Topics
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.groups.zookeeper_offsets import ZooKeeperOffsets
    from kafka_compat.metadata.cache import BrokerMetadata
    from kafka_compat.metadata.config_manager import ConfigManager
    from kafka_compat.metadata.group_configs import GroupConfigManager
    from kafka_compat.metadata.producer_ids import ProducerIds
    from kafka_compat.quotas.client_quotas import ClientQuotas
    from kafka_compat.replication.fetch_session import FetchSessionCache
    from kafka_compat.replication.flusher import Flusher
    from kafka_compat.replication.log_mover import LogMover
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.security.acls.keeper import Keeper
    from kafka_compat.security.scram_credential_store import ScramCredentials
    from kafka_compat.security.tokens.keeper import Keeper as DelegationTokens
    from kafka_compat.share_coordinator.coordinator import ShareCoordinator
    from kafka_compat.share_coordinator.persister import Persister
    from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager
    from kafka_compat.storage.directories.log_dirs import LogDirs
    from kafka_compat.telemetry.service import ClientTelemetry
    from kafka_compat.transactions.coordinator import TransactionCoordinator
    from kafka_compat.transactions.local_markers import LocalMarkerWriter
    from kafka_compat.transactions.verification import Verifications


class Services(ListenerServices, Protocol):
    """The services of a broker that its handlers may use."""

    topics: Topics
    """Creation, changes and deletion of topics."""
    membership: Membership
    controller: ControllerService

    def address_for(self, broker: BrokerMetadata, caller: Caller) -> tuple[str, int]:
        """Return the address of `broker` on the caller's listener."""

    async def await_metadata(self) -> None:
        """Wait, for a limited time, until this broker has the cluster metadata."""

    replicas: ReplicaManager
    log_dirs: LogDirs
    flusher: Flusher
    producer_ids: ProducerIds

    acls: Keeper | None
    """The authorizer's ACLs, or None if no authorizer is configured."""
    delegation_tokens: DelegationTokens | None
    """The delegation tokens, or None if they are disabled."""

    @property
    def configs(self) -> ConfigManager:
        """Settings of topics, brokers, groups and loggers."""

    group_configs: GroupConfigManager
    """The effective settings of groups."""

    @property
    def fetch_sessions(self) -> FetchSessionCache: ...

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def transactions(self) -> TransactionCoordinator: ...

    @property
    def share_coordinator(self) -> ShareCoordinator:
        """The share-partitions whose share coordinator is this broker."""

    @property
    def persister(self) -> Persister:
        """The stored state of all share-partitions, on any broker."""

    @property
    def share_partitions(self) -> SharePartitionManager:
        """The share-partitions that this broker leads, and its share sessions."""

    @property
    def verifications(self) -> Verifications:
        """Verification of transactions that write to this broker's partitions."""

    @property
    def markers(self) -> LocalMarkerWriter:
        """Writer of transaction markers to the partitions that this broker leads."""

    @property
    def zookeeper_offsets(self) -> ZooKeeperOffsets:
        """The offsets that Kafka clients older than 0.8.2 store in ZooKeeper."""

    @property
    def log_mover(self) -> LogMover: ...

    @property
    def client_quotas(self) -> ClientQuotas: ...

    @property
    def scram_credentials(self) -> ScramCredentials: ...

    @property
    def telemetry(self) -> ClientTelemetry:
        """The metrics pushed by clients. Available only to handlers declared with `telemetry`."""
