"""Services that a broker's request handlers use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from kafka_compat.cluster.broker_context import BrokerContext
from kafka_compat.metadata.emulation import emulation_of
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.broker.addresses import Addresses
    from kafka_compat.broker.hosted_coordinators import HostedCoordinators
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.groups.zookeeper_offsets import ZooKeeperOffsets
    from kafka_compat.metadata.config_manager import ConfigManager
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.quorum.node import QuorumNode
    from kafka_compat.quotas.client_quota_manager import Enforcement
    from kafka_compat.quotas.client_quotas import ClientQuotas
    from kafka_compat.replication.fetch_session import FetchSessionCache
    from kafka_compat.replication.log_mover import LogMover
    from kafka_compat.security.acls.keeper import Keeper
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.scram_credential_store import ScramCredentials
    from kafka_compat.security.tokens.keeper import Keeper as DelegationTokens
    from kafka_compat.share_coordinator.coordinator import ShareCoordinator
    from kafka_compat.share_coordinator.persister import Persister
    from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager
    from kafka_compat.telemetry.pushed import PushedMetrics
    from kafka_compat.telemetry.service import ClientTelemetry
    from kafka_compat.transactions.coordinator import TransactionCoordinator
    from kafka_compat.transactions.local_markers import LocalMarkerWriter
    from kafka_compat.transactions.verification import Verifications

# Idle time, or age, in milliseconds after which a fetch session may be evicted (see `fetch_session`).
FETCH_SESSION_EVICTION_MS = 120_000


class BrokerServices:
    """The services declared in `api.services`. Each is set at startup or created on first use."""

    def __init__(
        self,
        context: BrokerContext,
        membership: Membership,
        coordinators: HostedCoordinators,
        addresses: Addresses,
        tasks: Tasks,
        served: Mapping[ApiKey, tuple[int, int]],
        pushed: PushedMetrics | None = None,
    ) -> None:
        config = context.config
        self.config = config
        self.broker_id = context.metadata.local_id
        self.clock = context.clock
        self.store = context.store
        self.metadata = context.metadata
        self.log_dirs = context.log_dirs
        self.flusher = context.flusher
        self._dynamic_settings = context.dynamic_settings
        self.group_configs = context.group_configs
        self.long_work = context.long_work
        self.replicas = membership.replicas
        self.topics = membership.topics
        self.producer_ids = membership.producer_ids
        self.membership = membership
        self.controller = membership.service
        self.await_metadata = membership.await_metadata
        self.address_for = addresses.address_for
        self.served = served
        """The APIs and versions that the broker serves and reports to clients."""
        self.emulation = emulation_of(config)
        self.authorizer: Authorizer | None = None
        """The authorizer, or None if all operations are permitted. Set before the first request."""
        self.acls: Keeper | None = None
        """The ACLs that the authorizer uses, or None without an authorizer."""
        self.delegation_tokens: DelegationTokens | None = None
        """The delegation tokens, or None if no secret key is configured. Set before the first request."""
        self.counts = context.counts
        self.coordinators = coordinators
        self.quotas: Enforcement | None = None
        """The client quotas, or None if no quotas are stored."""
        self.quorum: QuorumNode | None = None
        """The node of the metadata quorum in this process, or None if the cluster has none."""
        self.is_controller = False
        self._tasks = tasks
        self._pushed = pushed

    @cached_property
    def configs(self) -> ConfigManager:
        from kafka_compat.metadata.config_manager import ConfigManager

        return ConfigManager(self._dynamic_settings)

    @cached_property
    def fetch_sessions(self) -> FetchSessionCache:
        from kafka_compat.replication.fetch_session import FetchSessionCache

        slots = self.config.int("max.incremental.fetch.session.cache.slots")
        return FetchSessionCache(slots, FETCH_SESSION_EVICTION_MS)

    @cached_property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups.get()

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transactions.get()

    @cached_property
    def share_coordinator(self) -> ShareCoordinator:
        return self.coordinators.shares.get()

    @cached_property
    def persister(self) -> Persister:
        return self.coordinators.persister.get()

    @cached_property
    def share_partitions(self) -> SharePartitionManager:
        return self.coordinators.share_partitions.get()

    @cached_property
    def markers(self) -> LocalMarkerWriter:
        return self.coordinators.markers.get()

    @cached_property
    def verifications(self) -> Verifications:
        return self.coordinators.verifications.get()

    @cached_property
    def log_mover(self) -> LogMover:
        from kafka_compat.replication.log_mover import LogMover

        return LogMover(self.log_dirs, self.replicas, self.config, self._tasks)

    @cached_property
    def zookeeper_offsets(self) -> ZooKeeperOffsets:
        from kafka_compat.groups.zookeeper_offsets import ZooKeeperOffsets

        return ZooKeeperOffsets(self.store, self.metadata, self.config.int("offset.metadata.max.bytes"))

    @cached_property
    def client_quotas(self) -> ClientQuotas:
        from kafka_compat.quotas.client_quotas import ClientQuotas

        return ClientQuotas(self.store, self.membership.announce)

    @cached_property
    def scram_credentials(self) -> ScramCredentials:
        from kafka_compat.security.scram_credential_store import ScramCredentials

        return ScramCredentials(self.store, self.membership.announce)

    @cached_property
    def telemetry(self) -> ClientTelemetry:
        from kafka_compat.telemetry.service import ClientTelemetry

        assert self._pushed is not None
        max_bytes = self.config.int("telemetry.max.bytes")
        return ClientTelemetry(self.store, self._tasks, self.clock, self._pushed, max_bytes)

    async def read_acls(self) -> None:
        """Create the authorizer and load the ACLs, if an authorizer is configured."""
        settings = self.config.authorizer
        if settings is None:
            return
        from kafka_compat.security.acls.authorizer import AclAuthorizer
        from kafka_compat.security.acls.keeper import Keeper
        from kafka_compat.security.acls.rules import Rules

        rules = Rules.configured(settings)
        self.acls = Keeper(self.store, rules, self._tasks, self.clock.now_ms)
        await self.acls.start()
        self.authorizer = AclAuthorizer(rules)

    async def read_delegation_tokens(self) -> None:
        """Load the delegation tokens, if a secret key for them is configured."""
        config = self.config
        key = config.delegation_token_key
        if key is None:
            return
        from kafka_compat.security.tokens.delegation_token import Terms
        from kafka_compat.security.tokens.keeper import Keeper

        terms = Terms(
            config.int("delegation.token.max.lifetime.ms"), config.int("delegation.token.expiry.time.ms")
        )
        self.delegation_tokens = Keeper(self.store, key, terms, self._tasks, self.clock.now_ms)
        await self.delegation_tokens.start()

    def keep_removing_delegation_tokens(self) -> None:
        """Remove expired delegation tokens periodically while this broker is the controller."""
        tokens = self.delegation_tokens
        if tokens is None:
            return
        interval_s = self.config.int("delegation.token.expiry.check.interval.ms") / 1000
        work = partial(
            tokens.keep_removing, lambda: self.metadata.controller_id == self.metadata.local_id, interval_s
        )
        self._tasks.spawn("removing expired delegation tokens", work, restarts=True)
