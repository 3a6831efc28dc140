"""A broker of a cluster: one that registers, runs for controller, and leads and follows what the controller
says.

What it shares with a broker that is alone is `kafka_compat.broker`; this adds the order in which a broker
joins and leaves: accept connections, register, follow /controller, wait for the first metadata; and back:
controlled shutdown, then stop as usual. A session that expired is replaced, and the broker registers anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from coordination import znodes
from coordination.controller_model import ControllerSettings
from coordination.metadata_store import (
    MetadataStore,
    MetadataStoreError,
    NodeExists,
    NoNode,
    SessionState,
)
from kafka_compat.broker import Broker, StartupError
from kafka_compat.clock import Clock
from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.cluster.config_changes import ConfigChanges, announce
from kafka_compat.cluster.controller_link import ControllerLink
from kafka_compat.cluster.controller_reign import ReignSettings
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.features import FinalizedFeatures, UnsupportedFeatures
from kafka_compat.cluster.isr_proposals import IsrProposals
from kafka_compat.cluster.metadata_updates import apply_update
from kafka_compat.cluster.peers import Peers
from kafka_compat.cluster.producer_id_blocks import ProducerIdBlocks
from kafka_compat.cluster.registration import register
from kafka_compat.cluster.replica_states import ReplicaStates, states_of
from kafka_compat.cluster.served import CLUSTER_SERVED
from kafka_compat.cluster.session import CurrentSession
from kafka_compat.cluster.topics import ClusterTopics
from kafka_compat.config import BrokerConfig, TopicToCreate
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata_cache import MetadataCache
from kafka_compat.producer_ids import ProducerIds
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafka_compat.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest
from kafka_compat.replication.follower import FollowerSettings
from kafka_compat.replication.replica_fetcher import ReplicaFetchers
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.replication.replication_quota import FOLLOWER_RATE, LEADER_RATE, ReplicationQuotas
from kafka_compat.topic_nodes import new_topic_id
from kafka_compat.topics import TopicManager
from storage.log_dirs import LoadReport

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_coordinators import ClusterCoordinators
    from kafka_compat.cluster.remote_markers import ClusterMarkerWriter

log = logging.getLogger(__name__)

ConnectStore = Callable[[], Awaitable[MetadataStore]]
"""A new session with the store. Raises MetadataStoreError when there is none to be had."""

Key = tuple[str, int]

RECONNECT_S = 1.0
FIRST_METADATA_S = 10.0
TELL_S = 2.0
"""How long a controller that stops waits for brokers to hear who leads now. One of them may be away."""
_UNKNOWN_EPOCH = -1


class ClusterBroker(Broker):
    """See above. `connect_store` is called for the first session, and for a new one after each expiry."""

    served = CLUSTER_SERVED
    topics: ClusterTopics
    controller: ControllerService

    def __init__(self, config: BrokerConfig, connect_store: ConnectStore, clock: Clock | None = None) -> None:
        super().__init__(config, clock)
        self.broker_epoch = _UNKNOWN_EPOCH
        self.controller_epoch = 0
        """The highest that a controller has sent."""
        self._connect_store = connect_store
        self._current: CurrentSession | None = None
        self._listener = config.inter_broker_listener
        self._leaders: dict[int, tuple[str, int]] = {}
        self._has_metadata = asyncio.Event()
        self._registered = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = False
        self._handed_over = False
        self._reentering = False
        self._shrink_timer: asyncio.TimerHandle | None = None
        self._config_changes = ConfigChanges(self._settings_changed, self.clock.now_ms)
        self._features = FinalizedFeatures(lambda: self.on_fatal())
        self._make_links()

    def _make_links(self) -> None:
        """What speaks for this broker, by its id."""
        config = self.config
        request_timeout_ms = config.int("controller.socket.timeout.ms")
        rebalance_s = config.int("leader.imbalance.check.interval.seconds")
        machine = ControllerSettings(
            delete_topic_enable=config.bool("delete.topic.enable"),
            leader_imbalance_per_broker_percentage=config.int("leader.imbalance.per.broker.percentage"),
        )
        self.controller = ControllerService(
            self.broker_id,
            ReignSettings(
                machine=machine,
                listener=self._listener,
                unclean_default=config.bool("unclean.leader.election.enable"),
                request_timeout_ms=request_timeout_ms,
                rebalance_interval_s=rebalance_s if config.bool("auto.leader.rebalance.enable") else None,
            ),
            self.clock.now_ms,
        )
        self._client_id = f"broker-{self.broker_id}"
        self.link = ControllerLink(
            self._client_id, self.controller, self._controller_address, request_timeout_ms
        )
        self._proposals = IsrProposals(
            self.broker_id,
            self.link,
            broker_epoch=lambda: self.broker_epoch,
            is_alive=lambda broker_id: broker_id in self.metadata.brokers,
        )
        self._peers = Peers(self._address_of, self._client_id, config.int("request.timeout.ms"))

    # --- transactions that span brokers

    @cached_property
    def _cluster_markers(self) -> ClusterMarkerWriter:
        from kafka_compat.cluster.remote_markers import ClusterMarkerWriter

        return ClusterMarkerWriter(self.markers, self.metadata, self._peers, self._topic_exists)

    def _marker_writer(self) -> ClusterMarkerWriter:
        return self._cluster_markers

    @cached_property
    def _cluster_coordinators(self) -> ClusterCoordinators:
        from kafka_compat.cluster.remote_coordinators import ClusterCoordinators

        return ClusterCoordinators(super()._coordinators(), self.metadata, self._peers)

    def _coordinators(self) -> ClusterCoordinators:
        return self._cluster_coordinators

    async def _topic_exists(self, topic: str) -> bool:
        """Whether the metadata store has it; as long as nobody can tell, it may."""
        try:
            return await self.store.exists(znodes.topic_path(topic)) is not None
        except MetadataStoreError:
            return True

    # --- start

    async def _open_store(self) -> None:
        try:
            session = await self._connect_store()
        except (MetadataStoreError, ValueError) as error:
            problem = f"{error} Without zookeeper.connect the broker runs alone and needs no ZooKeeper."
            raise StartupError(problem) from error
        self._tree_was_new = False
        self.store = self._current = CurrentSession(session)
        await self.store.ensure_all(znodes.PERSISTENT_PATHS)
        if not self.config.has_broker_id:
            await self._generate_broker_id()
        self._make_links()
        cluster_id = await self._cluster_id()
        self.log_dirs.identify(self.broker_id, cluster_id)
        self.metadata = MetadataCache(cluster_id, self.broker_id)

    async def _generate_broker_id(self) -> None:
        """Take an id that nobody else has: each write of /brokers/seqid has a version of its own. It is kept
        in meta.properties from then on."""
        if not self.config.bool("broker.id.generation.enable"):
            raise StartupError("broker.id is missing, and broker.id.generation.enable=false")
        stat = await self.store.set(znodes.BROKER_SEQUENCE, b"")
        self.config.adopt_broker_id(self.config.int("reserved.broker.max.id") + stat.version)
        self.broker_id = self.config.broker_id

    async def _cluster_id(self) -> str:
        """The cluster's id; the first broker gives it."""
        try:
            data, _ = await self.store.get(znodes.CLUSTER_ID)
        except NoNode:
            new_id = self._stored_cluster_id or znodes.encode_topic_id(new_topic_id())
            await self.store.ensure(znodes.CLUSTER_ID.rpartition("/")[0])
            try:
                await self.store.create(znodes.CLUSTER_ID, znodes.encode_cluster_id(new_id))
            except NodeExists:
                return await self._cluster_id()
            return new_id
        return znodes.decode_cluster_id(data)

    def _new_topics(self) -> TopicManager:
        return ClusterTopics(self.config, self.store, self.metadata, self.log_dirs, self.controller)

    def _new_replicas(self) -> ReplicaManager:
        config = self.config
        replicas = ReplicaManager(
            self.broker_id,
            self.log_dirs,
            self.metadata,
            self.flusher,
            self.loop.call_soon,
            proposer=self._proposals,
            lag_time_max_ms=config.int("replica.lag.time.max.ms"),
            quotas=ReplicationQuotas(
                self.broker_id,
                config.int("replication.quota.window.num"),
                1000 * config.int("replication.quota.window.size.seconds"),
            ),
        )
        self._fetchers = ReplicaFetchers(
            self.broker_id,
            FollowerSettings(
                fetch_max_bytes=config.int("replica.fetch.max.bytes"),
                response_max_bytes=config.int("replica.fetch.response.max.bytes"),
                min_bytes=config.int("replica.fetch.min.bytes"),
                wait_max_ms=config.int("replica.fetch.wait.max.ms"),
                backoff_ms=config.int("replica.fetch.backoff.ms"),
            ),
            self._client_to,
            self.clock,
            fetchers_per_leader=config.int("num.replica.fetchers"),
            quota=replicas.quotas.follower,
        )
        replicas.fetching = self._fetchers
        self._states = ReplicaStates(
            self.broker_id, replicas, self, lambda topic: self.topics.min_insync_replicas(topic)
        )
        return replicas

    def _new_producer_ids(self) -> ProducerIds:
        return ProducerIdBlocks(self.store, self.broker_id, self.link, lambda: self.broker_epoch)

    async def _take_up(self, report: LoadReport) -> None:
        """Nothing is led before the controller says so."""
        self.replicas.restore_high_watermarks(report.high_watermarks)
        self._apply_replication_settings()

    async def _join(self) -> None:
        self.configs.on_topic_config_changed.append(self._announce_topic)
        self.configs.on_broker_config_stored.append(self._announce_broker)
        try:
            await self._enter()
        except NodeExists as error:
            raise StartupError(f"another broker with broker.id={self.broker_id} is registered") from error
        except UnsupportedFeatures as error:
            raise StartupError(str(error)) from error
        self._schedule_shrinking()
        await self.await_metadata()
        if not self._has_metadata.is_set():
            log.warning("no controller has sent metadata yet: clients are told of nothing until then")

    async def _enter(self) -> None:
        """Register in the current session, and take part."""
        assert self._current is not None
        session = self._current.session
        session.on_state(lambda state: self._session_changed(session, state))
        wait_s = 2 * self.config.int("zookeeper.session.timeout.ms") / 1000
        info = self._own_registration()
        await self._features.start(session)
        self.broker_epoch = await register(session, info, self.clock.now_ms(), wait_s)
        self._registered.set()
        self.controller.start(session)
        await self._config_changes.start(session)

    async def await_metadata(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_METADATA_S):
                await self._has_metadata.wait()

    def _session_changed(self, session: MetadataStore, state: SessionState) -> None:
        if state is SessionState.EXPIRED and not self._leaving:
            log.warning(
                "the session with the metadata store expired: broker %d registers anew", self.broker_id
            )
            # A session that expires while the broker registers in it is noticed by the try under way.
            if not self._reentering:
                self._reentering = True
                self._run(self._reenter())

    async def _reenter(self) -> None:
        """Register anew, in new sessions until one stands."""
        try:
            while not self._leaving:
                await self.controller.stop()
                await self._config_changes.stop()
                await self._features.stop()
                if await self._enter_anew():
                    return
                await asyncio.sleep(RECONNECT_S)
        except UnsupportedFeatures as error:
            log.critical("%s", error)
            self.on_fatal()
        finally:
            self._reentering = False

    async def _enter_anew(self) -> bool:
        """One try with a new session; whether it stands."""
        assert self._current is not None
        session: MetadataStore | None = None
        try:
            session = self._current.session = await self._connect_store()
            await self._enter()
        except MetadataStoreError as error:
            log.warning("cannot register anew: %r", error)
            if session is not None:
                # Alive, it might hold a registration that stands in the way of the next one.
                await session.close()
            return False
        return session.state is not SessionState.EXPIRED

    def _schedule_shrinking(self) -> None:
        interval_s = self.config.int("replica.lag.time.max.ms") / 2000

        def shrink() -> None:
            self.replicas.shrink_isrs(self.clock.now_ms())
            self._shrink_timer = self.loop.call_later(interval_s, shrink)

        self._shrink_timer = self.loop.call_later(interval_s, shrink)

    def _run(self, work: Awaitable[None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except MetadataStoreError as error:
                log.warning("the metadata store: %r", error)

        task = self.loop.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- other brokers

    async def _controller_address(self, broker_id: int) -> tuple[str, int] | None:
        known = self._address_of(broker_id)
        if known is not None:
            return known
        try:
            data, _ = await self.store.get(znodes.broker_path(broker_id))
        except MetadataStoreError:
            return None
        endpoint = znodes.decode_broker(broker_id, data).endpoint(self._listener)
        return (endpoint.host, endpoint.port) if endpoint is not None else None

    def _address_of(self, broker_id: int) -> tuple[str, int] | None:
        known = self.metadata.brokers.get(broker_id)
        return known.endpoints.get(self._listener) if known is not None else None

    def _client_to(self, leader_id: int) -> BrokerClient | None:
        address = self._address_of(leader_id) or self._leaders.get(leader_id)
        if address is None:
            return None
        timeout_ms = self.config.int("replica.socket.timeout.ms")
        return BrokerClient(*address, self._client_id, request_timeout_ms=timeout_ms)

    # --- the controller's requests

    async def until_registered(self) -> None:
        """To be awaited before a controller's request is looked at: until this broker knows its epoch, it
        cannot tell whether the request was meant for its life before, whose records it may have lost."""
        await self._registered.wait()

    def refusal(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Why a controller's request is not obeyed: it was meant for an earlier life of this broker
        (KIP-380), or another controller was elected since."""
        if _UNKNOWN_EPOCH < broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE

    async def lead_and_follow(self, request: LeaderAndIsrRequest) -> ErrorCode | dict[Key, ErrorCode]:
        """LeaderAndIsr: the outcome of each partition, or why the request is refused."""
        await self.until_registered()
        await self.topics.learn_overrides(list(dict.fromkeys(topic for topic, _, _ in states_of(request))))
        refused = self.refusal(request.controller_epoch, request.broker_epoch)
        if refused:
            return refused
        for leader in request.live_leaders:
            self._leaders[leader.broker_id] = (leader.host_name, leader.port)
        return self._states.apply(request)

    @property
    def states(self) -> ReplicaStates:
        """What obeys StopReplica."""
        return self._states

    def update_metadata(self, request: UpdateMetadataRequest) -> None:
        """UpdateMetadata of a controller that is not refused."""
        peers = set(self.metadata.brokers)
        for topic in apply_update(self.metadata, request):
            self.topics.forget(topic.name)
            self._on_deleted(topic.name, [item.partition for item in topic.partitions])
        if peers - self.metadata.brokers.keys():
            self.replicas.peers_changed()
        self.topics.metadata_changed()
        for waiting in ("_cluster_markers", "_cluster_coordinators"):
            if waiting in self.__dict__:
                self.__dict__[waiting].metadata_changed()
        self._has_metadata.set()

    def leading(self, topic: str, partition: int) -> None:
        """This broker has begun to lead a partition."""
        self._on_leading(topic, partition)

    def stopping(self, topic: str, partition: int) -> None:
        """It leads a partition no more."""
        self._on_stopping(topic, partition)

    # --- settings

    def _broker_config_changed(self, names: set[str]) -> None:
        super()._broker_config_changed(names)
        self._apply_replication_settings()

    def _apply_replication_settings(self) -> None:
        self._fetchers.resize(self.config.int("num.replica.fetchers"))
        self.replicas.quotas.set_rates(self.config.int(LEADER_RATE), self.config.int(FOLLOWER_RATE))

    def _announce_topic(self, topic: str, settings: dict[str, str]) -> None:
        self._run(announce(self.store, f"topics/{topic}"))

    def _announce_broker(self, entity: str) -> None:
        self._run(announce(self.store, f"brokers/{entity}"))

    @property
    def finalized_features_epoch(self) -> int:
        return self._features.epoch

    async def _settings_changed(self, entity_path: str) -> None:
        kind, _, name = entity_path.partition("/")
        if kind == "topics":
            await self.topics.reread_overrides(name)
            self.controller.topic_settings_changed(name)
        elif kind == "brokers" and name in (str(self.broker_id), znodes.DEFAULT_ENTITY):
            await self.configs.load()
            self._broker_config_changed(set())
            self.controller.unclean_default_changed(self.config.bool("unclean.leader.election.enable"))

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        """As a broker that is alone does, but behind its back: the replicas' brokers may yet have to come."""
        self._run(super().create_wanted_topics(wanted))

    def _announce_entity(self, path: str) -> None:
        self._run(announce(self.store, path))

    # --- stop

    async def stop(self, *, controlled: bool = True) -> None:
        """As a broker that is alone, after the controller has moved its leaderships elsewhere."""
        if self._leaving or not self._started:
            return
        if controlled:
            await self.hand_over()
        await self._leave()
        await super().stop()
        await self._peers.close()
        await self._fetchers.close()

    async def hand_over(self) -> None:
        """ControlledShutdown until nothing is led here that another broker could lead, as often and as fast
        as controlled.shutdown.* say."""
        if self._handed_over or not self.config.bool("controlled.shutdown.enable"):
            return
        self._handed_over = True
        backoff_s = self.config.int("controlled.shutdown.retry.backoff.ms") / 1000
        for attempt in range(self.config.int("controlled.shutdown.max.retries")):
            if attempt:
                await asyncio.sleep(backoff_s)
            response = await self._ask_to_leave()
            if response is None:
                log.warning("no controller took over this broker's leaderships")
            elif response.error_code != ErrorCode.NONE:
                log.warning("controlled shutdown: %s", ErrorCode(response.error_code).name)
            elif not response.remaining_partitions:
                # Else the new leaders would hear of it from the next controller.
                await self.controller.told(TELL_S)
                return
            else:
                log.warning("nobody can take over %d partitions", len(response.remaining_partitions))

    async def _ask_to_leave(self) -> ControlledShutdownResponse | None:
        request = ControlledShutdownRequest(broker_id=self.broker_id, broker_epoch=self.broker_epoch)
        try:
            async with asyncio.timeout(self.config.int("controller.socket.timeout.ms") / 1000):
                return await self.link.send_once(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
        except TimeoutError:
            return None

    async def _leave(self) -> None:
        self._leaving = True
        if self._shrink_timer is not None:
            self._shrink_timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._proposals.close()
        await self._config_changes.stop()
        await self._features.stop()
        await self.controller.stop()
        await self.link.close()
        if self._current is not None:
            # Before the rest of the stop: a replica that was caught up a moment ago is waited for by the new
            # leaders for as long as it is registered.
            await self._current.close()

    async def _close_store(self) -> None:
        if not self._leaving:
            await self._leave()
