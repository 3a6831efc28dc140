"""Cluster membership of one broker, standalone or in a cluster: registration, the controller link, leadership
and replication.

At startup, the broker calls `open_store`, `create`, `follow_settings`, `recover` and `register`, and, once it
serves requests, `join`. At shutdown, it calls `shut_down_controlled`, `leave` and `close`. If startup fails
at any step, it calls `leave` and `close`. After `close`, the sequence may start again.

Only the store determines whether a broker is standalone. `peering` contains the code that needs other
brokers; a standalone broker does not load it. A standalone broker loads the controller on demand.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.features import FinalizedFeatures, UnsupportedFeatures
from kafka_compat.cluster.first_metadata import FirstMetadata
from kafka_compat.cluster.topic_settings import TopicSettings
from kafka_compat.cluster.topics import Topics
from kafka_compat.config.topic import DEAD_LETTERS_ENABLE
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes
from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.errors import ErrorCode, KafkaError, StartupError
from kafka_compat.lazy import Lazy
from kafka_compat.metadata.producer_ids import ProducerIds, claim_block
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import BrokerContext, StoreConnection
    from kafka_compat.cluster.controller_orders import ControllerOrders
    from kafka_compat.cluster.controller_settings import ControllerTermSettings
    from kafka_compat.cluster.forwarding import Forwarding
    from kafka_compat.cluster.local_orders import LocalOrders
    from kafka_compat.cluster.own_store import OwnStore
    from kafka_compat.cluster.peering import Peering
    from kafka_compat.cluster.quorum_participant import QuorumParticipant
    from kafka_compat.cluster.remote_partitions import RemotePartitions
    from kafka_compat.cluster.remote_persister import RemoteShareCoordinators
    from kafka_compat.cluster.remote_producer import RemoteProducer
    from kafka_compat.cluster.shared_store import SharedStore
    from kafka_compat.config import BrokerConfig
    from kafka_compat.config.environment import TopicToCreate
    from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.directories.log_dirs import LoadReport
    from kafka_compat.transactions.marker_writer import MarkerWriter
    from kafka_compat.transactions.verification import Coordinators

log = logging.getLogger(__name__)

FIRST_METADATA_S = 10.0
_DEAD_LETTER_TOPIC_CONFIGS = {DEAD_LETTERS_ENABLE: "true", "message.timestamp.type": "CreateTime"}
"""Settings of dead letter topics that a broker creates."""


class Membership:
    service: ControllerService
    """The controller role of this broker. It also knows the ID of the current controller."""
    replicas: ReplicaManager
    topics: Topics
    topic_settings: TopicSettings
    features: FinalizedFeatures
    producer_ids: ProducerIds

    def __init__(self, source: OwnStore | SharedStore) -> None:
        self._source = source
        self._context: BrokerContext
        self._tasks: Tasks | None = None
        """The background tasks of this startup, or None before `create` and after `leave`."""
        self._peering: Peering | None = None
        """The connections to other brokers, or None if the broker is standalone."""
        self._stopped_waiting = asyncio.Event()
        """Set if startup must not wait for other brokers any longer."""
        self._epoch = -1
        """The epoch of a standalone broker's registration, or -1 before it is registered."""

    @property
    def is_standalone(self) -> bool:
        """Whether the broker is standalone: no other broker can join."""
        return not self._source.is_shared

    @property
    def store(self) -> MetadataStore:
        return self._context.store

    @property
    def broker_epoch(self) -> int:
        """The epoch of the current registration."""
        return self._epoch if self._peering is None else self._peering.broker_epoch

    @property
    def orders(self) -> ControllerOrders:
        """The handler of the controller's requests."""
        return self._orders.get()

    @property
    def quorum(self) -> QuorumParticipant | None:
        """The node of the metadata quorum in this process, or None if the cluster has no quorum."""
        return self._source.participant

    # --- composition

    async def open_store(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> StoreConnection:
        """Open the metadata store, and set the broker ID in `config`. Raises StartupError if this fails.

        `directory` is the first log directory, and `stored_cluster_id` is the cluster ID in meta.properties.
        """
        return await self._source.open(config, clock, directory, stored_cluster_id)

    def create(self, context: BrokerContext) -> None:
        """Create the objects for this startup. Raises StartupError if the settings are invalid."""
        self._context = context
        tasks = self._tasks = Tasks(context.end_broker)
        malformed = self._malformed = MalformedNodes()
        config, metadata = context.config, context.metadata
        self.service = ControllerService(
            metadata.local_id, self._term_settings, context.clock.now_ms, tasks, context.long_work, malformed
        )
        peering = self._peering = None
        if self._source.is_shared:
            from kafka_compat.cluster.peering import Peering

            peering = self._peering = Peering(
                context, self._source.connect, self.service, tasks, malformed, self._settings_changed
            )
            peering.can_store_change = self._source.can_store_change
            if self._source.participant is not None:
                metadata.serves_for_controller = True
                peering.forward_requests()
        self.replicas = ReplicaManager(
            metadata.local_id,
            context.log_dirs,
            metadata,
            context.flusher,
            context.call_soon,
            monotonic_ms=context.clock.monotonic_ms,
            proposer=None if peering is None else peering.proposals,
            lag_time_max_ms=config.int("replica.lag.time.max.ms"),
            quotas=None if peering is None else peering.quotas,
            counts=context.counts,
        )
        self.features = (
            FinalizedFeatures(tasks, config, metadata, malformed) if peering is None else peering.features
        )
        self.topic_settings = TopicSettings(
            context.store, context.topic_overrides, metadata, self.replicas, malformed
        )
        self.topics = Topics(context, self.service, self.replicas, may_have_peers=peering is not None)
        if peering is None:
            self.producer_ids = ProducerIds(partial(claim_block, context.store, metadata.local_id))
        else:
            peering.fetch_for(self.replicas)
            self.producer_ids = ProducerIds(peering.allocate_producer_ids)
        self._first_metadata = FirstMetadata()
        self._orders = Lazy(self._make_orders)
        self._local_orders = Lazy(self._make_local_orders)
        metadata.feed.subscribe(self._on_metadata)

    def _term_settings(self) -> ControllerTermSettings:
        from kafka_compat.cluster.controller_settings import term_settings

        return term_settings(self._context.config, self._local_orders.get, self._context.broker_security)

    def _make_orders(self) -> ControllerOrders:
        from kafka_compat.cluster.controller_orders import ControllerOrders, Fence
        from kafka_compat.cluster.leader_and_isr import ReplicaStates

        context = self._context
        return ControllerOrders(
            Fence(lambda: self.broker_epoch),
            context.metadata,
            ReplicaStates(
                context.metadata.local_id,
                self.replicas,
                context.leaderships,
                context.topic_overrides.min_insync_replicas,
            ),
            self.topic_settings,
            {} if self._peering is None else self._peering.addresses.leaders,
            context.long_work,
            self._first_metadata,
        )

    def _make_local_orders(self) -> LocalOrders:
        from kafka_compat.cluster.local_orders import LocalOrders

        context = self._context
        return LocalOrders(self.orders, context.metadata.local_id, context.config.inter_broker_listener)

    @property
    def forwarding(self) -> Forwarding | None:
        """Forwards clients' requests to the controller. None if the cluster has no quorum."""
        return None if self._peering is None else self._peering.forwarding

    def marker_writer(self, local: MarkerWriter) -> MarkerWriter:
        """Return a marker writer for all partitions. `local` writes to this broker's partitions."""
        return local if self._peering is None else self._peering.marker_writer(local)

    def coordinators(self, local: Coordinators) -> Coordinators:
        """Return the coordinators of all transactional IDs. `local` contains this broker's coordinators."""
        return local if self._peering is None else self._peering.coordinators(local)

    def remote_share_coordinators(self) -> RemoteShareCoordinators | None:
        """Return the share coordinators on other brokers, or None if the broker is standalone."""
        return None if self._peering is None else self._peering.share_coordinators()

    def create_share_state_topic(self, done: Callable[[], None]) -> None:
        """Create `__share_group_state`, and call `done` after success or failure."""
        if self._tasks is None:
            done()
        else:
            self._tasks.spawn(f"creating topic {SHARE_STATE_TOPIC}", partial(self._create_share_state, done))

    async def _create_share_state(self, done: Callable[[], None]) -> None:
        try:
            await self.topics.ensure_internal(SHARE_STATE_TOPIC)
        except KafkaError as error:
            log.warning("Could not create topic %s: %s", SHARE_STATE_TOPIC, error.message or error.code.name)
        finally:
            done()

    def remote_partitions(self) -> RemotePartitions | None:
        """Return the client for partitions led by other brokers, or None if the broker is standalone."""
        return None if self._peering is None else self._peering.remote_partitions.get()

    def remote_producer(self) -> RemoteProducer | None:
        """Return the producer for partitions led by other brokers, or None if the broker is standalone."""
        return None if self._peering is None else self._peering.remote_producer.get()

    def prepare_dead_letter_topic(
        self, topic: str, *, creates: bool, done: Callable[[ErrorCode], None]
    ) -> None:
        """Read the settings of a topic, after creating it if it is missing and `creates` is true (KIP-1191).
        Then call `done`.
        """
        if self._tasks is None:
            done(ErrorCode.NOT_CONTROLLER)
            return
        self._tasks.spawn(
            f"preparing dead letter topic {topic}", partial(self._prepare_dead_letters, topic, creates, done)
        )

    async def _prepare_dead_letters(
        self, topic: str, creates: bool, done: Callable[[ErrorCode], None]
    ) -> None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            if creates:
                await self.topics.ensure(topic, configs=_DEAD_LETTER_TOPIC_CONFIGS)
            if topic in self._context.metadata.topics:
                await self.topic_settings.learn([topic])
            code = ErrorCode.NONE
        except KafkaError as error:
            log.warning("Could not create topic %s: %s", topic, error.message or error.code.name)
            code = error.code
        finally:
            done(code)

    # --- startup

    async def follow_settings(self) -> None:
        """Skip existing notifications of changed settings. Call this before reading any settings."""
        if self._peering is not None:
            await self._peering.config_changes.begin(self._context.store)

    async def recover(self, report: LoadReport, *, may_lack_topics: bool) -> None:
        """Restore the state of the partitions after loading the logs. A standalone broker becomes leader of
        all partitions; in a cluster, the controller decides.
        """
        if self._peering is not None:
            self.replicas.restore_high_watermarks(report.high_watermarks)
            self._peering.apply_settings()
            return
        from kafka_compat.cluster.recovery import Recovery

        assert not self._source.is_shared
        await Recovery(self._context, self.replicas, self._malformed).run(adopts=may_lack_topics)
        await self._source.finish_recovery(self._context.metadata.cluster_id)

    async def register(self, broker: BrokerInfo) -> None:
        """Register this broker. Raises StartupError if this fails, for example because its ID is taken."""
        if self._peering is not None:
            self._first_metadata.expected_topics = len(await self.store.children(znodes.TOPICS))
            if self._first_metadata.expected_topics:
                await self._await_other_leaders()
            await self._peering.register(broker)
            return
        from kafka_compat.cluster.registration import register_alone
        from kafka_compat.metadata.cache import BrokerMetadata

        context = self._context
        self._epoch, controller_epoch = await register_alone(
            context.store, broker, context.clock.now_ms(), self._malformed
        )
        endpoints = {end.listener: (end.host, end.port) for end in broker.endpoints}
        change = context.metadata.change()
        change.set_brokers({broker.broker_id: BrokerMetadata(broker.broker_id, endpoints, broker.rack)})
        change.set_controller(broker.broker_id)
        change.publish()
        try:
            await self.features.read(context.store)
        except UnsupportedFeatures as error:
            raise StartupError(str(error)) from error
        self._first_metadata.received.set()
        self.service.hold(context.store, controller_epoch)

    async def _await_other_leaders(self) -> None:
        from kafka_compat.cluster.lost_records import await_other_leaders, may_have_lost_records

        log_dirs = self._context.log_dirs
        if may_have_lost_records(log_dirs):
            broker_id = self._context.metadata.local_id
            held = log_dirs.logs.keys()
            await await_other_leaders(self.store, self._malformed, broker_id, held, self._stopped_waiting)

    def stop_waiting(self) -> None:
        """Let startup fail instead of waiting for other brokers or voters."""
        self._stopped_waiting.set()
        if self.quorum is not None:
            self.quorum.stop_waiting()

    async def join(self) -> None:
        """Complete startup while requests are served. Wait, for a limited time, for the first metadata."""
        if self._peering is None:
            return
        await self.await_metadata()
        assert self._tasks is not None
        self._tasks.spawn("preparing the controller", self.service.get_ready)
        if not self._first_metadata.received.is_set():
            log.warning(
                "No controller has sent metadata yet; clients see no topics until a controller sends it"
            )

    async def await_metadata(self) -> None:
        """Wait up to FIRST_METADATA_S seconds for the first metadata of the cluster."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_METADATA_S):
                await self._first_metadata.received.wait()

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        """Create the missing topics of KAFKA_CREATE_TOPICS, and log failures. In a cluster, this runs in the
        background, because other brokers may still have to join.
        """
        for topic in wanted:
            if self._peering is None:
                await self._create_wanted(topic)
            elif self._tasks is not None:
                self._tasks.spawn(f"creating topic {topic.name}", partial(self._create_wanted, topic))

    async def _create_wanted(self, wanted: TopicToCreate) -> None:
        configs = {"cleanup.policy": wanted.cleanup_policy} if wanted.cleanup_policy else {}
        if self._peering is not None:
            await self.topics.until_brokers(wanted.replication_factor)
        try:
            await self.topics.ensure(wanted.name, wanted.partitions, wanted.replication_factor, configs)
        except KafkaError as error:
            log.warning("Could not create topic %s: %s", wanted.name, error.message or error.code.name)

    # --- changes

    def announce(self, entity_path: str) -> None:
        """Notify all brokers that the settings of an entity have changed."""
        if self._peering is not None:
            self._peering.announce(entity_path)
        else:
            self._context.entity_changes.tell_soon(entity_path)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        if delta.removed_broker_ids:
            self.replicas.peers_changed()
        for change in delta.config_changes:
            if self._peering is not None:
                if change.is_local:
                    self._peering.announce(change.entity)
                if change.is_of_broker:
                    self._peering.apply_settings()
            elif change.topic is not None:
                self.service.topic_settings_changed(change.topic)
            elif change.is_of_broker:
                self._unclean_default_changed()

    async def _settings_changed(self, entity_path: str) -> None:
        config = self._context.config
        kind, _, name = entity_path.partition("/")
        if kind == "topics":
            await self.topic_settings.reread(name)
            self.service.topic_settings_changed(name)
        elif kind == "brokers" and name in (str(config.broker_id), znodes.DEFAULT_ENTITY):
            await self._context.dynamic_settings.reload()
            self._unclean_default_changed()
        elif kind == "groups":
            await self._context.group_configs.reread(name)
        elif kind in ("users", "clients", "ips"):
            await self._context.entity_changes.tell(entity_path)

    def _unclean_default_changed(self) -> None:
        self.service.unclean_default_changed(self._context.config.bool("unclean.leader.election.enable"))

    def report_offline(self, lost: Sequence[tuple[str, int]]) -> None:
        """Report to clients and the controller that this broker is no longer leader of these partitions,
        because a disk failed.
        """
        if self._tasks is None:
            return
        if self._peering is None:
            # A standalone broker need not wait for a controller: no other replica can become leader.
            self.topics.forget_leaders(lost)
        self._tasks.spawn("reporting a failed log directory", self._report_offline, restarts=True)

    async def _report_offline(self) -> None:
        try:
            await self.topics.report_offline()
        except MetadataStoreError as error:
            if self._peering is not None:
                raise
            # Only log the error: if the journal's disk has failed, the next startup detects the failure.
            log.error("Could not store the state of the offline partitions: %s", error)

    # --- snapshots

    def snapshot(self) -> Mapping[str, bytes]:
        """Return the contents of the metadata files of a standalone broker, keyed by file name."""
        assert not self._source.is_shared
        return self._source.snapshot()

    # --- shutdown

    async def shut_down_controlled(self) -> None:
        """Move leadership to other brokers, unless the broker is standalone."""
        if self._peering is not None:
            await self._peering.shut_down_controlled()

    async def leave(self) -> None:
        """Leave the cluster. Repeated calls have no effect."""
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            if self._peering is not None:
                self._peering.begin_leaving()
            await tasks.close()
            if self._peering is not None:
                await self._peering.leave()
            await self.service.stop()
        await self._source.leave()

    async def close(self) -> None:
        """Close the store and all other open resources, after the broker has stopped serving requests."""
        peering, self._peering = self._peering, None
        if peering is not None:
            await peering.close()
        await self._source.close()
