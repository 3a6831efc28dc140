"""The composition root: which parts a broker has, and the order in which they start and stop.

Start: claim the addresses, lock the folders, open the metadata store, make the parts, read the settings, open
the logs, lead what is to be led, register, and only then answer connections, which wait until then. Stop is
the same backwards; what was acknowledged is on disk before the clean-shutdown marker.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple

from kafka_compat.broker import data_folders
from kafka_compat.broker.addresses import Addresses
from kafka_compat.broker.hosted_coordinators import HostedCoordinators
from kafka_compat.broker.services import BrokerServices, M_co
from kafka_compat.clock import Clock, SystemClock
from kafka_compat.config import BrokerConfig, TopicToCreate
from kafka_compat.coordination.model import BrokerInfo, Endpoint
from kafka_compat.errors import StartupError
from kafka_compat.long_work import LongWork
from kafka_compat.membership.foundation import Foundation, Made, Opened
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.config_manager import ConfigManager
from kafka_compat.metadata.topic_overrides import TopicOverrides
from kafka_compat.network.dispatch import Dispatcher
from kafka_compat.network.limits import Limits, bound
from kafka_compat.network.server import Server
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.replication.flusher import Flusher
from kafka_compat.replication.leaderships import Leaderships
from kafka_compat.storage.directory_worker import ThreadWorker
from kafka_compat.storage.filesystem import Filesystem
from kafka_compat.storage.log_dirs import LoadReport, LogDirs
from kafka_compat.tasks import OnFailure, Tasks
from kafka_compat.upkeep.maintenance import Maintenance

log = logging.getLogger(__name__)

# Few objects of a broker form cycles, and a collection in the middle of a request frees next to nothing.
# Those of new objects are short; older ones, maybe of one long request, are left to Maintenance.
GC_THRESHOLDS = (5_000, 1_000_000, 1_000_000)


class Broker(Generic[M_co]):
    """One broker. `membership` is the way it belongs."""

    services: BrokerServices[M_co]
    """What its handlers use; there is from the middle of `start` on."""

    def __init__(
        self,
        config: BrokerConfig,
        membership: M_co,
        served: Mapping[ApiKey, tuple[int, int]],
        *,
        clock: Clock | None = None,
        filesystem: Filesystem | None = None,
    ) -> None:
        """`served` are the APIs that it serves, with their lowest and highest versions."""
        self.config = config
        self.membership = membership
        self.on_fatal: Callable[[], None] = lambda: None
        """Called when the broker cannot go on: whoever runs it stops it and exits with an error."""
        self._clock: Clock = clock or SystemClock()
        self._filesystem = filesystem
        self._served = served
        self._tasks = Tasks(self._end)
        self._leaderships = Leaderships()
        self._running: _Running | None = None
        self._server: Server | None = None
        self._log_dirs: LogDirs | None = None

    @property
    def broker_id(self) -> int:
        """Its id in the cluster; one that is generated is known after the start."""
        return self.config.broker_id

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Where this broker listens, by the listener's name."""
        assert self._server is not None
        return self._server.bound

    # --- start

    async def start(self) -> None:
        """Serve. Raises StartupError, with nothing changed, when another broker is in the way or a setting is
        wrong.
        """
        try:
            self._running = await self._start()
        except BaseException:
            await self._abandon()
            raise

    async def _start(self) -> _Running:
        config, membership = self.config, self.membership
        server = self._server = Server(_limits(config))
        self._bind(server)

        overrides = TopicOverrides(config)
        log_dirs = self._open_log_dirs(overrides)
        server.descriptors.make_room = log_dirs.spare_descriptors
        stored_cluster_id = data_folders.claim(log_dirs, config)
        first = log_dirs.directories[0]
        opened = await membership.open_store(config, self._clock, first, stored_cluster_id)
        log_dirs.identify(config.broker_id, opened.cluster_id)

        foundation = self._lay_foundation(opened, log_dirs, overrides)
        made = membership.make(foundation)
        coordinators = HostedCoordinators(foundation, made.replicas, membership)
        addresses = Addresses(config.broker_id, config.advertised_listeners, server.bound)
        services = self.services = BrokerServices(
            foundation, made, membership, coordinators, addresses, self._tasks, self._served
        )
        dispatcher = Dispatcher(services)

        # What is loaded stays, and hardly any of it is in a cycle: the collector would only walk it again and
        # again, which takes longer than the loading where there are very many partitions.
        gc.collect()
        gc.disable()
        try:
            await self._read_settings(foundation, made)
            report = data_folders.load(log_dirs, keep_gaps=opened.may_lack_topics)
            _tell_of_recovery(report)
            await membership.take_up(report)
        finally:
            gc.enable()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        await membership.register(self._registration(addresses))
        await server.start(dispatcher.dispatch)
        await membership.settle()

        maintenance = Maintenance(
            config,
            self._clock,
            made.replicas,
            log_dirs,
            foundation.flusher,
            foundation.leaderships,
            foundation.long_work,
            foundation.topic_overrides,
        )
        maintenance.start(self._tasks)
        if log_dirs.futures:
            services.log_mover.resume()
        return _Running(server, dispatcher, foundation, maintenance)

    def _bind(self, server: Server) -> None:
        for listener in self.config.listeners:
            try:
                server.bind(listener)
            except OSError as error:
                raise StartupError(
                    f"cannot listen on {listener.name}://{listener.host}:{listener.port}: "
                    f"{error.strerror or error}. "
                    "Is another broker running? Choose another address with "
                    f"--override listeners={listener.name}://127.0.0.1:PORT (0 for any free port)."
                ) from error

    def _open_log_dirs(self, overrides: TopicOverrides) -> LogDirs:
        loop = asyncio.get_running_loop()

        def failed(directory: str, lost: list[tuple[str, int]]) -> None:
            # From whatever thread.
            loop.call_soon_threadsafe(self._disk_failed, lost)

        log_dirs = self._log_dirs = LogDirs(
            self.config.log_dirs,
            clock=self._clock,
            config_for=overrides.log_config,
            filesystem=self._filesystem,
            on_failure=failed,
            new_worker=lambda path: ThreadWorker(f"log-dir {path}", loop.call_soon_threadsafe),
        )
        data_folders.lock(log_dirs)
        return log_dirs

    def _lay_foundation(self, opened: Opened, log_dirs: LogDirs, overrides: TopicOverrides) -> Foundation:
        loop = asyncio.get_running_loop()
        metadata = MetadataCache(opened.cluster_id, self.config.broker_id)
        return Foundation(
            config=self.config,
            clock=self._clock,
            store=opened.store,
            metadata=metadata,
            log_dirs=log_dirs,
            flusher=Flusher(loop),
            configs=ConfigManager(self.config, opened.store, metadata),
            topic_overrides=overrides,
            leaderships=self._leaderships,
            long_work=LongWork(loop),
            call_soon=loop.call_soon,
            end_broker=self._end,
        )

    async def _read_settings(self, foundation: Foundation, made: Made) -> None:
        configs, topic_settings = foundation.configs, made.topic_settings
        await configs.load()
        configs.on_topic_config_changed.append(topic_settings.apply)
        configs.on_broker_config_changed.append(lambda _: topic_settings.apply_broker_defaults())
        await topic_settings.read_all()

    def _registration(self, addresses: Addresses) -> BrokerInfo:
        endpoints = (Endpoint(name, host, port) for name, (host, port) in addresses.own().items())
        return BrokerInfo(self.config.broker_id, tuple(endpoints), self.config.str("broker.rack"))

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        """Make the topics of KAFKA_CREATE_TOPICS that are not there; one that cannot be made is logged."""
        await self.membership.create_wanted_topics(wanted)

    # --- what must not happen

    def _end(self) -> None:
        self.on_fatal()

    def _disk_failed(self, lost: list[tuple[str, int]]) -> None:
        assert self._log_dirs is not None
        if lost:
            services = self.services
            for topic, partition in lost:
                self._leaderships.stopping(topic, partition)
            services.replicas.take_offline(lost)
        if lost and not self._tasks.closed:
            # Let clients and the store know that nobody leads these partitions.
            self._tasks.spawn(
                "telling of a failed disk",
                partial(self.services.topics.note_offline, lost),
                OnFailure.RESTART,
            )
        if self._running is not None and len(self._log_dirs.offline) == len(self._log_dirs.directories):
            log.critical("every log directory is offline: the broker stops")
            self.on_fatal()

    # --- stop

    async def hand_over(self) -> None:
        """Have others lead what this broker leads, before `stop`: a broker that is alone has nobody."""
        await self.membership.hand_over()

    async def stop(self, *, controlled: bool = True) -> None:
        """Stop serving; returns when all is on disk and the folders carry the clean-shutdown marker.

        `controlled`: only after `hand_over`.
        """
        running, self._running = self._running, None
        if running is None:
            return
        if controlled:
            await self.membership.hand_over()
        await self.membership.leave()
        running.maintenance.stop()
        running.server.stop_accepting()
        await self._tasks.close()
        services = self.services
        services.coordinators.close()
        services.replicas.resign_all()
        await running.dispatcher.stop()
        services.long_work.close()
        running.server.stop()
        await asyncio.sleep(0)
        running.foundation.flusher.close()
        await self.membership.close()
        running.foundation.log_dirs.close(services.replicas.high_watermarks())

    async def _abandon(self) -> None:
        """Give back what a start that failed had claimed."""
        if self._server is not None:
            self._server.stop()
        await self._tasks.close()
        await self.membership.leave()
        await self.membership.close()
        if self._log_dirs is not None:
            self._log_dirs.unlock()


class _Running(NamedTuple):
    """What a broker that has started stops."""

    server: Server
    dispatcher: Dispatcher
    foundation: Foundation
    maintenance: Maintenance


def _limits(config: BrokerConfig) -> Limits:
    return Limits(
        request_max_bytes=config.int("socket.request.max.bytes"),
        idle_max_ms=config.int("connections.max.idle.ms"),
        connections_max=config.int("max.connections"),
        connections_per_ip_max=config.int("max.connections.per.ip"),
        frame_deadline_ms=config.int("kafka.compat.frame.timeout.ms"),
        send_buffer_bytes=config.int("socket.send.buffer.bytes"),
        receive_buffer_bytes=config.int("socket.receive.buffer.bytes"),
        connections_per_ip_overrides=config.connections_per_ip_overrides,
        request_memory_bytes=bound(config.int("queued.max.request.bytes")),
        answer_memory_bytes=bound(config.int("kafka.compat.queued.max.response.bytes")),
    )


def _tell_of_recovery(report: LoadReport) -> None:
    if not report.clean:
        log.warning(
            "the last stop was not clean: checked %d logs, %d bytes", report.log_count, report.recovered_bytes
        )
    for directory in report.offline:
        log.error("log directory %s is offline", directory)
