"""A broker of a cluster: one that registers, runs for controller, and leads and follows what the controller
says.

What a broker asks of it is `membership.Membership`; here stands which parts answer, and in which order they
begin and end. Leaving, it first has its leaderships moved, then ends what lives in its session, then the
session, and last, when no client is served any more, its connections to other brokers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.clock import Clock
from kafka_compat.cluster.broker_addresses import BrokerAddresses
from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.cluster.config_changes import ConfigChanges, announce
from kafka_compat.cluster.controlled_shutdown import hand_over
from kafka_compat.cluster.controller_link import ControllerLink
from kafka_compat.cluster.controller_orders import ControllerOrders, Fence
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.controller_settings import ControllerTermSettings
from kafka_compat.cluster.enrolment import Enrolment
from kafka_compat.cluster.features import FinalizedFeatures, UnsupportedFeatures
from kafka_compat.cluster.isr_proposals import IsrProposals
from kafka_compat.cluster.peers import Peers
from kafka_compat.cluster.producer_id_blocks import ProducerIdBlocks
from kafka_compat.cluster.replica_states import ReplicaStates
from kafka_compat.cluster.session import ConnectStore, CurrentSession
from kafka_compat.cluster.topic_settings import ClusterTopicSettings
from kafka_compat.cluster.topics import ClusterTopics
from kafka_compat.config import BrokerConfig, ConfigError, TopicToCreate
from kafka_compat.coordination.controller.outcomes import ControllerSettings
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store.metadata_store import (
    LoginFailed,
    MetadataStore,
    MetadataStoreError,
    NodeExists,
    NoNode,
    NotAllowed,
)
from kafka_compat.errors import StartupError
from kafka_compat.lazy import Lazy
from kafka_compat.membership.foundation import Foundation, Made, Opened, create_wanted
from kafka_compat.metadata.feed import MetadataDelta
from kafka_compat.metadata.topic_nodes import new_topic_id
from kafka_compat.replication.follower import FollowerSettings
from kafka_compat.replication.replica_fetcher import ReplicaFetchers
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.replication.replication_quota import FOLLOWER_RATE, LEADER_RATE, ReplicationQuotas
from kafka_compat.storage.directories.log_dirs import LoadReport
from kafka_compat.tasks import OnFailure, Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_partitions import RemotePartitions
    from kafka_compat.security.broker_security import BrokerSecurity
    from kafka_compat.transactions.marker_writer import MarkerWriter
    from kafka_compat.transactions.verification import Coordinators

log = logging.getLogger(__name__)

FIRST_METADATA_S = 10.0


class ClusterMembership:
    """See above; `membership.Membership` says what each call is for."""

    service: ControllerService
    """Who the controller is, and this broker as it."""
    orders: ControllerOrders
    """What handlers of the controller's requests call."""
    topic_settings: ClusterTopicSettings
    store: CurrentSession

    def __init__(self, connect_store: ConnectStore) -> None:
        """`connect_store` is called for the first session, and for a new one after each expiry."""
        self._connect_store = connect_store
        self._store: CurrentSession | None = None
        self._is_made = False
        self._handed_over = False
        self._left = False

    @property
    def broker_epoch(self) -> int:
        """The epoch of the registration of now."""
        return self._enrolment.broker_epoch

    # --- the store

    async def open_store(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> Opened:
        try:
            session = await self._connect_store()
            store = self.store = self._store = CurrentSession(session)
            await store.ensure_all(znodes.PERSISTENT_PATHS)
            if not config.has_broker_id:
                await _generate_broker_id(store, config)
            cluster_id = await _cluster_id(store, stored_cluster_id)
        except (LoginFailed, NotAllowed) as error:
            raise StartupError(str(error)) from error
        except ConfigError as error:
            raise StartupError(error.in_full) from error
        except (MetadataStoreError, ValueError) as error:
            problem = f"{error} Without zookeeper.connect the broker runs alone and needs no ZooKeeper."
            raise StartupError(problem) from error
        return Opened(store, cluster_id, may_lack_topics=False)

    # --- composition

    def make(self, foundation: Foundation) -> Made:
        self._foundation = foundation
        config, clock, metadata = foundation.config, foundation.clock, foundation.metadata
        broker_id = metadata.local_id
        self._tasks = Tasks(foundation.end_broker)
        self._addresses = BrokerAddresses(metadata, self.store, config.inter_broker_listener)
        self._client_id = f"broker-{broker_id}"

        self._security = foundation.broker_security()
        request_timeout_ms = config.int("controller.socket.timeout.ms")
        malformed = MalformedNodes()
        self.service = ControllerService(
            broker_id,
            _term_settings(config, self._security),
            clock.now_ms,
            self._tasks,
            foundation.long_work,
            malformed,
        )
        self._link = ControllerLink(
            self._client_id,
            self.service,
            self._addresses.of_controller,
            request_timeout_ms,
            self._security,
        )
        self._features = FinalizedFeatures(self._tasks, metadata, malformed)
        self._config_changes = ConfigChanges(self._tasks, self._settings_changed, clock.now_ms, malformed)
        self._enrolment = Enrolment(
            self.store,
            self._connect_store,
            self._tasks,
            features=self._features,
            service=self.service,
            config_changes=self._config_changes,
            now_ms=clock.now_ms,
            wait_s=2 * config.int("zookeeper.session.timeout.ms") / 1000,
        )

        self._proposals = IsrProposals(
            broker_id,
            self._link,
            broker_epoch=lambda: self._enrolment.broker_epoch,
            is_alive=lambda other: other in metadata.brokers,
        )
        self._replicas = self._make_replicas()
        self.topic_settings = ClusterTopicSettings(
            self.store, foundation.topic_overrides, metadata, self._replicas, malformed
        )
        self._topics = ClusterTopics(foundation, self.service)
        states = ReplicaStates(
            broker_id,
            self._replicas,
            foundation.leaderships,
            foundation.topic_overrides.min_insync_replicas,
        )
        self.orders = ControllerOrders(
            Fence(lambda: self._enrolment.broker_epoch),
            metadata,
            self._replicas,
            states,
            self.topic_settings,
            self._addresses,
            foundation.long_work,
        )
        metadata.feed.subscribe(self._on_metadata)
        self._peers = Peers(
            self._addresses.known, self._client_id, config.int("request.timeout.ms"), self._security
        )
        self._remote_partitions = Lazy(self._make_remote_partitions)
        producer_ids = ProducerIdBlocks(
            self.store, broker_id, self._link, lambda: self._enrolment.broker_epoch
        )

        self._is_made = True
        return Made(self._replicas, self._topics, self.topic_settings, producer_ids)

    def _make_replicas(self) -> ReplicaManager:
        foundation = self._foundation
        config, broker_id = foundation.config, foundation.metadata.local_id
        replicas = ReplicaManager(
            broker_id,
            foundation.log_dirs,
            foundation.metadata,
            foundation.flusher,
            foundation.call_soon,
            monotonic_ms=foundation.clock.monotonic_ms,
            proposer=self._proposals,
            lag_time_max_ms=config.int("replica.lag.time.max.ms"),
            quotas=ReplicationQuotas(
                broker_id,
                config.int("replication.quota.window.num"),
                1000 * config.int("replication.quota.window.size.seconds"),
            ),
            counts=foundation.counts,
        )
        self._fetchers = ReplicaFetchers(
            broker_id,
            FollowerSettings(
                fetch_max_bytes=config.int("replica.fetch.max.bytes"),
                response_max_bytes=config.int("replica.fetch.response.max.bytes"),
                min_bytes=config.int("replica.fetch.min.bytes"),
                wait_max_ms=config.int("replica.fetch.wait.max.ms"),
                backoff_ms=config.int("replica.fetch.backoff.ms"),
            ),
            self._client_to,
            foundation.clock,
            fetchers_per_leader=config.int("num.replica.fetchers"),
            quota=replicas.quotas.follower,
        )
        replicas.fetching = self._fetchers
        return replicas

    def _client_to(self, leader_id: int) -> BrokerClient | None:
        address = self._addresses.of_leader(leader_id)
        if address is None:
            return None
        timeout_ms = self._foundation.config.int("replica.socket.timeout.ms")
        return BrokerClient(*address, self._client_id, request_timeout_ms=timeout_ms, security=self._security)

    @property
    def unclean_elections(self) -> int:
        return self.service.unclean_elections

    def controller(self) -> ControllerService:
        return self.service

    def marker_writer(self, local: MarkerWriter) -> MarkerWriter:
        from kafka_compat.cluster.remote_markers import ClusterMarkerWriter

        return ClusterMarkerWriter(local, self._foundation.metadata, self._peers, self._topic_exists)

    def coordinators(self, local: Coordinators) -> Coordinators:
        from kafka_compat.cluster.remote_coordinators import ClusterCoordinators

        return ClusterCoordinators(local, self._foundation.metadata, self._peers)

    def remote_partitions(self) -> RemotePartitions:
        """What other brokers tell of partitions that they lead."""
        return self._remote_partitions.get()

    def _make_remote_partitions(self) -> RemotePartitions:
        from kafka_compat.cluster.remote_partitions import RemotePartitions

        timeout_ms = self._foundation.config.int("request.timeout.ms")
        return RemotePartitions(Peers(self._addresses.known, self._client_id, timeout_ms, self._security))

    async def _topic_exists(self, topic: str) -> bool:
        """Whether the metadata store has it; as long as nobody can tell, it may."""
        try:
            return await self.store.exists(znodes.topic_path(topic)) is not None
        except MetadataStoreError:
            return True

    # --- start

    async def note_changes(self) -> None:
        await self._config_changes.begin(self.store)

    async def take_up(self, report: LoadReport) -> None:
        """Nothing is led before the controller says so."""
        self._replicas.restore_high_watermarks(report.high_watermarks)
        self._apply_replication_settings()

    async def register(self, broker: BrokerInfo) -> None:
        self.orders.expects_topics = bool(await self.store.children(znodes.TOPICS))
        try:
            await self._enrolment.enter(broker)
        except NodeExists as error:
            raise StartupError(f"another broker with broker.id={broker.broker_id} is registered") from error
        except UnsupportedFeatures as error:
            raise StartupError(str(error)) from error

    async def settle(self) -> None:
        self._tasks.spawn("looking for followers that lag", self._shrink_isrs, OnFailure.RESTART)
        await self.await_metadata()
        self._tasks.spawn("getting ready to be the controller", self.service.get_ready)
        if not self.orders.has_metadata.is_set():
            log.warning("no controller has sent metadata yet: clients are told of nothing until then")

    async def await_metadata(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_METADATA_S):
                await self.orders.has_metadata.wait()

    async def _shrink_isrs(self) -> None:
        interval_s = self._foundation.config.int("replica.lag.time.max.ms") / 2000
        while True:
            await asyncio.sleep(interval_s)
            self._replicas.shrink_isrs(self._foundation.clock.monotonic_ms())

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        """Behind the broker's back: the replicas' brokers may yet have to come."""
        for topic in wanted:
            self._tasks.spawn(f"making topic {topic.name}", partial(self._create_wanted, topic))

    async def _create_wanted(self, wanted: TopicToCreate) -> None:
        await self._topics.until_brokers(wanted.replication_factor)
        await create_wanted(self._topics, wanted)

    # --- settings

    def announce(self, entity_path: str) -> None:
        self._tasks.spawn(
            f"telling of new settings of {entity_path}",
            partial(announce, self.store, entity_path),
            OnFailure.RESTART,
        )

    def _on_metadata(self, delta: MetadataDelta) -> None:
        if delta.removed_broker_ids:
            self._replicas.peers_changed()
        for change in delta.config_changes:
            if change.is_local:
                self.announce(change.entity)
            if change.is_of_broker:
                self._apply_replication_settings()

    def _apply_replication_settings(self) -> None:
        config = self._foundation.config
        self._fetchers.resize(config.int("num.replica.fetchers"))
        self._replicas.quotas.set_rates(config.int(LEADER_RATE), config.int(FOLLOWER_RATE))

    async def _settings_changed(self, entity_path: str) -> None:
        """Some broker says so."""
        config = self._foundation.config
        kind, _, name = entity_path.partition("/")
        if kind == "topics":
            await self.topic_settings.reread(name)
            self.service.topic_settings_changed(name)
        elif kind == "brokers" and name in (str(config.broker_id), znodes.DEFAULT_ENTITY):
            await self._foundation.configs.reload()
            self.service.unclean_default_changed(config.bool("unclean.leader.election.enable"))
        elif kind in ("users", "clients", "ips"):
            await self._foundation.entity_changes.tell(entity_path)

    # --- stop

    async def hand_over(self) -> None:
        config = self._foundation.config
        if self._handed_over or not config.bool("controlled.shutdown.enable"):
            return
        self._handed_over = True
        await hand_over(config, self._link, self.service, self._enrolment.broker_epoch)

    async def leave(self) -> None:
        if self._left:
            return
        self._left = True
        if self._is_made:
            self._enrolment.is_leaving = True
            await self._tasks.close()
            await self._proposals.close()
            await self._enrolment.leave()
            await self._link.close()
        if self._store is not None:
            # Before the rest of the stop: a replica that was caught up a moment ago is waited for by the new
            # leaders for as long as it is registered.
            await self._store.close()

    async def close(self) -> None:
        if self._is_made:
            await self._peers.close()
            if self._remote_partitions.made is not None:
                await self._remote_partitions.made.close()
            await self._fetchers.close()


def _term_settings(config: BrokerConfig, security: BrokerSecurity) -> ControllerTermSettings:
    rebalance_s = config.int("leader.imbalance.check.interval.seconds")
    return ControllerTermSettings(
        machine=ControllerSettings(
            delete_topic_enable=config.bool("delete.topic.enable"),
            leader_imbalance_per_broker_percentage=config.int("leader.imbalance.per.broker.percentage"),
        ),
        listener=config.inter_broker_listener,
        unclean_default=config.bool("unclean.leader.election.enable"),
        request_timeout_ms=config.int("controller.socket.timeout.ms"),
        rebalance_interval_s=rebalance_s if config.bool("auto.leader.rebalance.enable") else None,
        security=security,
    )


async def _generate_broker_id(store: MetadataStore, config: BrokerConfig) -> None:
    """Take an id that nobody else has: each write of /brokers/seqid has a version of its own. It is kept in
    meta.properties from then on."""
    if not config.bool("broker.id.generation.enable"):
        raise StartupError("broker.id is missing, and broker.id.generation.enable=false")
    stat = await store.set(znodes.BROKER_SEQUENCE, b"")
    config.adopt_broker_id(config.int("reserved.broker.max.id") + stat.version)


async def _cluster_id(store: MetadataStore, stored_id: str | None) -> str:
    """The cluster's id; the first broker gives it."""
    try:
        data, _ = await store.get(znodes.CLUSTER_ID)
    except NoNode:
        new_id = stored_id or znodes.encode_topic_id(new_topic_id())
        await store.ensure(znodes.CLUSTER_ID.rpartition("/")[0])
        try:
            await store.create(znodes.CLUSTER_ID, znodes.encode_cluster_id(new_id))
        except NodeExists:
            return await _cluster_id(store, stored_id)
        return new_id
    try:
        return znodes.decode_cluster_id(data)
    except MalformedNode as error:
        raise StartupError(str(error)) from error
