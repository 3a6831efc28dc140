"""The composition root: one broker with everything it owns, and the order in which it starts and stops.

Start: claim the addresses, lock the folders, read the metadata, open the logs, lead the partitions, load the
groups, and only then accept connections. Stop is the same backwards; what was acknowledged is on disk before
the clean-shutdown marker.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from coordination import znodes
from coordination.embedded import EmbeddedMetadataStore
from coordination.journal import CorruptJournal
from coordination.metadata_store import MetadataStore, NodeExists
from coordination.model import BrokerInfo, Endpoint
from kafka_compat.clock import Clock, SystemClock
from kafka_compat.config import BrokerConfig, TopicToCreate
from kafka_compat.configs import ConfigManager
from kafka_compat.connection import Connection
from kafka_compat.dispatch import Dispatcher
from kafka_compat.handlers import SERVED
from kafka_compat.maintenance import Maintenance
from kafka_compat.metadata_cache import BrokerMetadata, MetadataCache
from kafka_compat.producer_ids import ProducerIds
from kafka_compat.replication.fetch_session import FetchSessionCache
from kafka_compat.replication.flusher import Flusher
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.server import Limits, Server
from kafka_compat.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka_compat.topic_nodes import new_topic_id
from kafka_compat.topics import TopicManager
from storage.batch import CompressionType
from storage.errors import StorageError
from storage.log_dirs import LoadReport, LogDirs, stored_meta_properties

if TYPE_CHECKING:
    from kafka_compat.client_quotas import ClientQuotas
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.groups.store_offsets import StoreOffsets
    from kafka_compat.lone_controller import Controller
    from kafka_compat.replication.log_mover import LogMover
    from kafka_compat.scram_credentials import ScramCredentials
    from kafka_compat.transactions.coordinator import TransactionCoordinator
    from kafka_compat.transactions.local_markers import LocalMarkerWriter
    from kafka_compat.transactions.marker_writer import MarkerWriter
    from kafka_compat.transactions.verification import Coordinators, Verifications

log = logging.getLogger(__name__)

JOURNAL_NAME = "kafka-compat-metadata.journal"
# Few objects of a broker form cycles; a collection in the middle of a request would cost more than it frees.
GC_THRESHOLD = 50_000
# A fetch session that was used within this time is not given up for a new one.
FETCH_SESSION_EVICTION_MS = 120_000


class StartupError(Exception):
    """The broker cannot start; the message says why and what would help. Nothing was changed."""


class Broker:
    """One broker. Several may live in one process: nothing is shared but what is passed in."""

    config: BrokerConfig
    loop: asyncio.AbstractEventLoop
    server: Server
    log_dirs: LogDirs
    store: MetadataStore
    metadata: MetadataCache
    topics: TopicManager
    replicas: ReplicaManager
    configs: ConfigManager
    producer_ids: ProducerIds
    fetch_sessions: FetchSessionCache
    flusher: Flusher
    dispatcher: Dispatcher

    served = SERVED
    """The APIs and versions that it serves, and tells clients of."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.broker_id = config.broker_id
        self.auto_create_topics = config.bool("auto.create.topics.enable")
        self.fetch_max_bytes = config.int("fetch.max.bytes")
        self.describe_partitions_max = config.int("max.request.partition.size.limit")
        self.advertised = config.advertised_listeners
        self._tree: EmbeddedMetadataStore | None = None
        self._maintenance: Maintenance | None = None
        self._started = False
        self._reports: set[asyncio.Task[None]] = set()
        self.on_fatal: Callable[[], None] = lambda: None
        """Called when the broker cannot go on: whoever runs it stops it and exits with an error."""

    @property
    def finalized_features_epoch(self) -> int:
        """What ApiVersions tells as the epoch of the finalized features; alone a broker changes none."""
        return 0

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Where this broker listens, by the listener's name."""
        return self.server.bound

    @cached_property
    def groups(self) -> GroupCoordinator:
        """Made when the first group asks or is loaded: a broker without groups starts sooner for it."""
        from kafka_compat.groups.coordinator import GroupCoordinator
        from kafka_compat.groups.partition_log import PartitionCoordinatorLog
        from kafka_compat.groups.scheduler import LoopScheduler
        from kafka_compat.groups.settings import group_settings

        groups = GroupCoordinator(
            coordinator_log=PartitionCoordinatorLog(
                self.replicas,
                self.metadata,
                self.clock,
                CompressionType(self.config.int("offsets.topic.compression.codec")),
            ),
            scheduler=LoopScheduler(self.loop),
            settings=group_settings(self.config),
            now_ms=self.clock.now_ms,
            partition_exists=lambda topic, partition: self.metadata.partition(topic, partition) is not None,
        )
        groups.start()
        return groups

    @cached_property
    def store_offsets(self) -> StoreOffsets:
        """The positions of Kafka's oldest clients."""
        from kafka_compat.groups.store_offsets import StoreOffsets

        return StoreOffsets(self.store, self.metadata, self.config.int("offset.metadata.max.bytes"))

    @cached_property
    def log_mover(self) -> LogMover:
        """Made when the first log is to move to another directory."""
        from kafka_compat.replication.log_mover import LogMover

        return LogMover(self.log_dirs, self.replicas, self.config)

    @cached_property
    def markers(self) -> LocalMarkerWriter:
        """Ends transactions in the partitions that this broker leads."""
        from kafka_compat.transactions.local_markers import LocalMarkerWriter

        return LocalMarkerWriter(
            self.replicas, self.metadata, self.clock, lambda: self.groups, self.verifications.ended
        )

    def _marker_writer(self) -> MarkerWriter:
        """What the coordinator ends its transactions with."""
        return self.markers

    @cached_property
    def verifications(self) -> Verifications:
        """Asks coordinators about transactions that come to a partition here."""
        from kafka_compat.transactions.verification import Verifications

        return Verifications(self.replicas, self._coordinators())

    def _coordinators(self) -> Coordinators:
        from kafka_compat.transactions.verification import LocalCoordinators

        return LocalCoordinators(lambda: self.transactions)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """Made when the first transactional producer asks, or is loaded."""
        from kafka_compat.groups.partition_log import PartitionCoordinatorLog
        from kafka_compat.groups.scheduler import LoopScheduler
        from kafka_compat.transactions.coordinator import TransactionCoordinator
        from kafka_compat.transactions.settings import transaction_settings

        transactions = TransactionCoordinator(
            coordinator_log=PartitionCoordinatorLog(
                self.replicas, self.metadata, self.clock, CompressionType.NONE, TRANSACTIONS_TOPIC
            ),
            markers=self._marker_writer(),
            scheduler=LoopScheduler(self.loop),
            settings=transaction_settings(self.config),
            now_ms=self.clock.now_ms,
        )
        transactions.start()
        return transactions

    # --- start

    async def start(self) -> None:
        """Serve. Raises StartupError, with nothing changed, when another broker is in the way or a setting is
        wrong.
        """
        self.loop = asyncio.get_running_loop()
        self.dispatcher = Dispatcher(self)
        self.flusher = Flusher(self.loop)
        self.server = Server(self._limits(), self.dispatcher.dispatch)
        try:
            self._bind()
            self._open_log_dirs()
            await self._open_store()
            await self._lead()
            await self.server.start()
            await self._join()
        except BaseException:
            await self._abandon()
            raise
        self._maintenance = Maintenance(self)
        self._maintenance.start()
        if self.log_dirs.futures:
            self.log_mover.resume()
        self._started = True
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)

    async def await_metadata(self) -> None:
        """Wait for a while until this broker knows its cluster: alone it does when it begins to serve."""

    def _limits(self) -> Limits:
        config = self.config
        return Limits(
            request_max_bytes=config.int("socket.request.max.bytes"),
            idle_max_ms=config.int("connections.max.idle.ms"),
            connections_max=config.int("max.connections"),
            connections_per_ip_max=config.int("max.connections.per.ip"),
            frame_deadline_ms=config.int("kafka.compat.frame.timeout.ms"),
            send_buffer_bytes=config.int("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.int("socket.receive.buffer.bytes"),
            connections_per_ip_overrides=config.connections_per_ip_overrides,
        )

    def _bind(self) -> None:
        for listener in self.config.listeners:
            try:
                self.server.bind(listener)
            except OSError as error:
                raise StartupError(
                    f"cannot listen on {listener.name}://{listener.host}:{listener.port}: "
                    f"{error.strerror or error}. "
                    "Is another broker running? Choose another address with "
                    f"--override listeners={listener.name}://127.0.0.1:PORT (0 for any free port)."
                ) from error

    def _open_log_dirs(self) -> None:
        self.log_dirs = LogDirs(
            self.config.log_dirs,
            clock=self.clock,
            config_for=lambda topic: self.topics.log_config_for(topic),
            on_failure=lambda directory, lost: self._on_loop(self._disk_failed, directory, lost),
        )
        try:
            self.log_dirs.lock()
        except (StorageError, OSError) as error:
            raise StartupError(str(error)) from error
        if len(self.log_dirs.offline) == len(self.log_dirs.directories):
            raise StartupError(f"cannot use {', '.join(self.log_dirs.directories)} for data (log.dirs)")
        stored = stored_meta_properties(self.log_dirs.directories)
        if stored.get("version", "0") != "0":
            raise StartupError(
                f"{', '.join(self.log_dirs.directories)} belong to a Kafka in KRaft mode "
                f"(meta.properties has version={stored['version']}), whose folders it does not open: "
                "choose other log.dirs"
            )
        if self.config.has_broker_id and stored.get("broker.id", "") not in ("", str(self.broker_id)):
            raise StartupError(
                f"{', '.join(self.log_dirs.directories)} belong to broker.id={stored['broker.id']}, "
                f"this broker has broker.id={self.broker_id}: start it with the same, or on other log.dirs"
            )
        if not self.config.has_broker_id and stored.get("broker.id", "").isdecimal():
            # A folder from another broker, with nobody saying who we are: we are that broker.
            self.config.adopt_broker_id(int(stored["broker.id"]))
            self.broker_id = self.config.broker_id
        self._stored_cluster_id = stored.get("cluster.id")

    async def _open_store(self) -> None:
        path = os.path.join(self.log_dirs.directories[0], JOURNAL_NAME)
        try:
            self._tree = EmbeddedMetadataStore(path, self.clock.now_ms)
        except (OSError, CorruptJournal) as error:
            raise StartupError(f"cannot read the metadata journal {path}: {error}") from error
        self.store = self._tree.connect()
        self._tree_was_new = await self.store.exists(znodes.CLUSTER_ID) is None
        if self._tree_was_new:
            await self.store.ensure_all(znodes.PERSISTENT_PATHS)
            cluster_id = self._stored_cluster_id or znodes.encode_topic_id(new_topic_id())
        else:
            data, _ = await self.store.get(znodes.CLUSTER_ID)
            cluster_id = znodes.decode_cluster_id(data)
        self.log_dirs.identify(self.broker_id, cluster_id)
        self.metadata = MetadataCache(cluster_id, self.broker_id)
        self.metadata.controller_id = self.broker_id
        await self._register()

    def _own_registration(self) -> BrokerInfo:
        told = {name: self._told_address(name) for name in self.server.bound}
        return BrokerInfo(
            self.broker_id,
            tuple(Endpoint(name, host, port) for name, (host, port) in told.items()),
            self.config.str("broker.rack"),
        )

    async def _register(self) -> None:
        info = self._own_registration()
        payload = znodes.encode_broker(info, self.clock.now_ms())
        try:
            await self.store.create(znodes.broker_path(self.broker_id), payload, ephemeral=True)
        except NodeExists as error:
            raise StartupError(f"another broker with broker.id={self.broker_id} is registered") from error
        endpoints = {end.listener: (end.host, end.port) for end in info.endpoints}
        self.metadata.brokers[self.broker_id] = BrokerMetadata(self.broker_id, endpoints, info.rack)

    async def _lead(self) -> None:
        config = self.config
        self.topics = self._new_topics()
        self.replicas = self._new_replicas()
        self.topics.replicas = self.replicas
        self.configs = ConfigManager(config, self.store, self.metadata)
        await self.configs.load()
        self.configs.on_topic_config_changed.append(self.topics.apply_overrides)
        self.configs.on_broker_config_changed.append(self._broker_config_changed)
        self.producer_ids = self._new_producer_ids()
        self.fetch_sessions = FetchSessionCache(
            config.int("max.incremental.fetch.session.cache.slots"),
            FETCH_SESSION_EVICTION_MS,
        )
        self.topics.on_leading.append(self._on_leading)
        self.topics.on_stopping.append(self._on_stopping)
        self.topics.on_deleted.append(self._on_deleted)
        await self.topics.read_overrides()
        try:
            report = self.log_dirs.load(keep_gaps=self._tree_was_new)
        except StorageError as error:
            raise StartupError(str(error)) from error
        if not report.clean:
            log.warning(
                "the last stop was not clean: checked %d logs, %d bytes",
                report.log_count,
                report.recovered_bytes,
            )
        for directory in report.offline:
            log.error("log directory %s is offline", directory)
        await self._take_up(report)

    def _new_topics(self) -> TopicManager:
        return TopicManager(self.config, self.store, self.metadata, self.log_dirs)

    def _new_replicas(self) -> ReplicaManager:
        return ReplicaManager(self.broker_id, self.log_dirs, self.metadata, self.flusher, self.loop.call_soon)

    def _new_producer_ids(self) -> ProducerIds:
        return ProducerIds(self.store, self.broker_id)

    async def _take_up(self, report: LoadReport) -> None:
        """Lead all that was found on disk and in the tree."""
        known = [producer for held in self.log_dirs.logs.values() for producer in held.producers.entries]
        await self.producer_ids.skip(max(known, default=-1))
        await self.topics.load(self._tree_was_new)
        if self._tree_was_new:
            # Last, because it ends the tree's being new: an adoption cut short is taken up again.
            await self.store.put(znodes.CLUSTER_ID, znodes.encode_cluster_id(self.metadata.cluster_id))

    async def _join(self) -> None:
        """What is left to do once connections are accepted: nothing for a broker that is alone."""

    def _on_leading(self, topic: str, partition: int) -> None:
        if topic == OFFSETS_TOPIC:
            self.groups.load(partition)
        elif topic == TRANSACTIONS_TOPIC:
            held = self.replicas.get(topic, partition)
            if held is not None:
                self.transactions.load(partition, held.leader_epoch)

    def _on_stopping(self, topic: str, partition: int) -> None:
        if topic == OFFSETS_TOPIC:
            self.groups.unload(partition)
        elif topic == TRANSACTIONS_TOPIC:
            self.transactions.unload(partition)

    def _on_deleted(self, topic: str, partitions: list[int]) -> None:
        if "groups" in self.__dict__:
            self.groups.forget_partitions([(topic, partition) for partition in partitions])

    def _on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Call on the event loop, from whatever thread."""
        self.loop.call_soon_threadsafe(function, *arguments)

    def _disk_failed(self, directory: str, lost: list[tuple[str, int]]) -> None:
        for topic, partition in lost:
            self._on_stopping(topic, partition)
        if lost:
            self.replicas.take_offline(lost)
            self._report_lost(lost)
        if self._started and len(self.log_dirs.offline) == len(self.log_dirs.directories):
            log.critical("every log directory is offline: the broker stops")
            self.on_fatal()

    def _report_lost(self, lost: list[tuple[str, int]]) -> None:
        """Let clients and the store know that nobody leads these partitions."""
        report = self.loop.create_task(self.topics.note_offline(lost))
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    def _broker_config_changed(self, names: set[str]) -> None:
        self.auto_create_topics = self.config.bool("auto.create.topics.enable")
        self.topics.apply_broker_defaults()

    # --- addresses

    def _told_address(self, listener: str) -> tuple[str, int]:
        """What other brokers and tools are told of a listener without a connection to look at."""
        told = self.advertised.get(listener)
        if told is not None:
            return told
        host, port = self.server.bound[listener]
        return (socket.gethostname() if host in ("", "0.0.0.0", "::") else host), port

    def address_for(self, broker: BrokerMetadata, connection: Connection) -> tuple[str, int]:
        """Where a client that came by `connection` finds `broker`."""
        name = connection.listener_name
        if broker.broker_id == self.broker_id and name not in self.advertised:
            # The address that this client dialled works for it, whatever other names the machine has.
            return connection.local_host, connection.local_port
        return broker.endpoints.get(name) or next(iter(broker.endpoints.values()))

    # --- what others ask for

    @cached_property
    def controller(self) -> Controller:
        """The cluster's controller, as far as this broker is it."""
        from kafka_compat.lone_controller import LoneController

        return LoneController(self.metadata)

    @cached_property
    def client_quotas(self) -> ClientQuotas:
        """The quotas of clients, kept for those who ask."""
        from kafka_compat.client_quotas import ClientQuotas

        return ClientQuotas(self.store, self._announce_entity)

    @cached_property
    def scram_credentials(self) -> ScramCredentials:
        """The credentials of users, kept for those who ask."""
        from kafka_compat.scram_credentials import ScramCredentials

        return ScramCredentials(self.store, self._announce_entity)

    def _announce_entity(self, path: str) -> None:
        """The settings of an entity of the store changed: nobody else has to know."""

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        """Make the topics of KAFKA_CREATE_TOPICS that are not there; one that cannot be made is logged."""
        for topic in wanted:
            await self.topics.create_wanted(topic)

    # --- stop

    async def hand_over(self) -> None:
        """Have others lead what this broker leads, before `stop`: a broker that is alone has nobody."""

    async def stop(self, *, controlled: bool = True) -> None:
        """Stop serving; returns when all is on disk and the folders carry the clean-shutdown marker.

        `controlled`: only after `hand_over`.
        """
        if not self._started:
            return
        self._started = False
        if self._maintenance is not None:
            self._maintenance.stop()
        self.server.stop_accepting()
        if "log_mover" in self.__dict__:
            self.log_mover.stop()
        if "transactions" in self.__dict__:
            self.transactions.close()
        if "groups" in self.__dict__:
            self.groups.close()
        self.replicas.resign_all()
        await self.dispatcher.stop()
        self.server.stop()
        await asyncio.sleep(0)
        self.flusher.close()
        await self._close_store()
        self.log_dirs.close(self.replicas.high_watermarks())

    async def _close_store(self) -> None:
        if self._tree is not None:
            await self._tree.close()

    async def _abandon(self) -> None:
        """Give back what a start that failed had claimed."""
        self.server.stop()
        await self._close_store()
        if hasattr(self, "log_dirs"):
            self.log_dirs.unlock()
