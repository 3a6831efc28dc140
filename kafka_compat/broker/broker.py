"""Composition root of a broker: its parts, and the order in which they start and stop.

Startup: bind the addresses, lock the log directories, open the metadata store, create the parts, read the
settings, open the logs, become leader of recovered partitions, register, and only then serve connections.
Shutdown has the reverse order; acknowledged records are on disk before the clean-shutdown marker is written.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kafka_compat.api.calls import Calls
from kafka_compat.api.slow_requests import SlowRequests
from kafka_compat.broker import log_directories
from kafka_compat.broker.addresses import Addresses, bind
from kafka_compat.broker.connection_limits import by_listener, connection_rates, limits
from kafka_compat.broker.hooks import BrokerHooks
from kafka_compat.broker.hosted_coordinators import HostedCoordinators
from kafka_compat.broker.quotas_in_force import QuotasInForce
from kafka_compat.broker.services import BrokerServices
from kafka_compat.clock import SystemClock
from kafka_compat.cluster.broker_context import BrokerContext, EntityChanges
from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint
from kafka_compat.errors import StartupError
from kafka_compat.handlers.served import TELEMETRY_SERVED
from kafka_compat.lazy import Lazy
from kafka_compat.long_work import LongWork
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.dynamic_settings import DynamicSettings
from kafka_compat.metadata.group_configs import GroupConfigManager
from kafka_compat.metadata.topic_overrides import TopicOverrides
from kafka_compat.network.admission import UNLIMITED
from kafka_compat.network.dispatch import Dispatcher
from kafka_compat.network.server import Server
from kafka_compat.replication.counts import Counts
from kafka_compat.replication.disk_work import finished
from kafka_compat.replication.flusher import Flusher
from kafka_compat.replication.leaderships import Leaderships
from kafka_compat.storage.directories.directory_worker import ThreadWorker
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.tasks import Tasks
from kafka_compat.upkeep.maintenance import Maintenance

if TYPE_CHECKING:
    import socket

    from kafka_compat.broker.entrances import Entrances
    from kafka_compat.cluster.broker_context import StoreConnection
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.metadata.feed import MetadataDelta, Subscriber
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.quotas.connection_rates import ConnectionRates
    from kafka_compat.replication.partition import Partition
    from kafka_compat.security.broker_security import BrokerSecurity
    from kafka_compat.storage.clock import Clock
    from kafka_compat.upkeep.log_cleaner import LogCleaner

    Sockets: TypeAlias = list[tuple[Listener, socket.socket]]

log = logging.getLogger(__name__)

_STARTS_PER_COLLECTION = 8
"""Number of restarts between two full garbage collections, each of which takes half as long as a startup."""


class Broker:
    """A broker, standalone or in a cluster."""

    services: BrokerServices
    """The services of request handlers. Set by `start`."""
    calls: Calls
    """The dispatcher of requests from clients and from other parts of this process. Set by `start`."""

    def __init__(
        self,
        config: BrokerConfig,
        membership: Membership,
        served: Mapping[ApiKey, tuple[int, int]],
        hooks: BrokerHooks | None = None,
    ) -> None:
        """`served` maps the supported APIs to their lowest and highest versions. The APIs for client metrics
        are added if `hooks.pushed` is set.
        """
        hooks = hooks or BrokerHooks()
        self.config = config
        self.membership = membership
        self.on_fatal: Callable[[], None] = lambda: None
        """Function that is called after a fatal error. It must stop the broker and exit with an error."""
        self.keeps_data = True
        """Whether `stop` flushes the logs. Set it to False if the data is then deleted."""
        self._clock: Clock = hooks.clock or SystemClock()
        self._hooks = hooks
        self._served = (
            served if hooks.pushed is None else dict(sorted({**served, **TELEMETRY_SERVED}.items()))
        )
        self._tasks = Tasks(self._end)
        self._leaderships = Leaderships()
        self._running: _Running | None = None
        self._restarts = 0
        self._subscribers: list[Subscriber] = []
        self._server: Server | None = None
        self._log_dirs: LogDirs | None = None

    @property
    def broker_id(self) -> int:
        """The broker's ID. A generated ID is known only after startup."""
        return self.config.broker_id

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Maps listener names to their bound hosts and ports."""
        assert self._server is not None
        return self._server.bound

    def subscribe(self, subscriber: Subscriber) -> None:
        """Subscribe to all metadata changes. The subscription survives restarts of the broker."""
        self._subscribers.append(subscriber)
        if self._running is not None:
            self.services.metadata.feed.subscribe(subscriber)

    @property
    def is_running(self) -> bool:
        """Whether the broker has started and is not shutting down."""
        return self._running is not None

    async def start(self) -> None:
        """Start serving. Raises StartupError, without changing anything, if another broker uses the same
        resources or a setting is invalid.
        """
        try:
            self._running = await self._start(None)
        except BaseException:
            await self._abandon()
            raise

    async def _start(self, sockets: Sockets | None) -> _Running:
        """Start with the listening sockets of the previous run, or bind new sockets if `sockets` is None."""
        config, membership = self.config, self.membership
        rates = Lazy(partial(connection_rates, config))
        server = self._server = Server(limits(config), rates)
        if sockets is None:
            self._bind(server)
        else:
            server.take_over(sockets)
        entrances = self._make_entrances(server)

        overrides = TopicOverrides(config)
        log_dirs = self._open_log_dirs(overrides)
        server.descriptors.make_room = log_dirs.spare_descriptors
        stored_cluster_id = log_directories.claim(log_dirs, config)
        stored = await membership.open_store(config, self._clock, log_dirs.directories[0], stored_cluster_id)
        log_dirs.identify(config.broker_id, stored.cluster_id)

        await self._take_over_first_users(stored)
        context = self._new_context(stored, log_dirs, overrides, entrances)
        membership.create(context)
        coordinators = HostedCoordinators(context, membership.replicas, membership, self._hooks.scheduler)
        published = config.published_listeners
        addresses = Addresses(config.broker_id, config.advertised_listeners, server.bound, published)
        if published:
            from kafka_compat.broker.published import PublishedAddresses

            server.reached_at = PublishedAddresses(published).reached_at
        services = self.services = BrokerServices(
            context, membership, coordinators, addresses, self._tasks, self._served, self._hooks.pushed
        )
        if membership.quorum is not None:
            services.quorum = membership.quorum.node
        calls = self.calls = Calls(
            services,
            middleware=self._hooks.middleware,
            accounts=self._hooks.accounts,
            # Metrics contain the durations of requests.
            is_watched=bool(
                config.str("kafka.compat.http.listener") or config.str("kafka.compat.otlp.endpoint")
            ),
        )
        dispatcher = Dispatcher(calls, services.emulation)
        quotas = QuotasInForce(context, services, calls, rates)
        slow_requests = SlowRequests(config, calls)

        # Disable garbage collection during startup: the loaded objects are permanent and rarely in a cycle.
        # With a large number of partitions, examining them repeatedly would take longer than loading them.
        gc.collect()
        gc.disable()
        try:
            await membership.follow_settings()
            await context.dynamic_settings.load()
            await membership.topic_settings.read_all()
            await context.group_configs.read_all()
            await services.read_delegation_tokens()
            if entrances is not None:
                entrances.delegation_tokens = services.delegation_tokens
                await entrances.open(context, self._tasks)
            await services.read_acls()
            if membership.quorum is not None:
                await membership.quorum.serve(context, services.authorizer)
            await quotas.load()
            report = log_directories.load(log_dirs, keep_gaps=stored.may_lack_topics)
            await membership.recover(report, may_lack_topics=stored.may_lack_topics)
        finally:
            gc.enable()
        gc.freeze()
        await membership.register(self._registration(addresses))
        await server.start(dispatcher.dispatch, dispatcher.refusal)
        _limit_connections(config, server, rates)

        def metadata_changed(delta: MetadataDelta) -> None:
            for api in calls.apis.values():
                api.forget_repeated()
            if any(change.is_of_broker for change in delta.config_changes):
                slow_requests.obey()
                _limit_connections(config, server, rates)

        context.metadata.feed.subscribe(metadata_changed)
        await membership.join()
        services.keep_removing_delegation_tokens()

        maintenance = Maintenance(
            config,
            self._clock,
            membership.replicas,
            log_dirs,
            context.flusher,
            context.metadata.feed,
            context.long_work,
            context.topic_overrides,
        )
        maintenance.start(self._tasks)
        if log_dirs.futures:
            services.log_mover.resume()
        return _Running(server, dispatcher, context, maintenance)

    def _bind(self, server: Server) -> None:
        for listener in self.config.listeners:
            remedy = (
                "Choose another address with "
                f"--override listeners={listener.name}://127.0.0.1:PORT (0 for any free port)."
            )
            bind(server, listener, "broker", remedy)

    def _make_entrances(self, server: Server) -> Entrances | None:
        """Create the listeners' authentication. Return None if no listener uses TLS or SASL."""
        if all(listener.security_protocol == "PLAINTEXT" for listener in self.config.listeners):
            return None
        from kafka_compat.broker.entrances import Entrances

        try:
            return Entrances(self.config, self._clock, server)
        except ConfigError as error:
            raise StartupError(error.in_full) from error

    async def _take_over_first_users(self, stored: StoreConnection) -> None:
        path = self.config.str("kafka.compat.scram.credentials.file")
        if path:
            from kafka_compat.security import first_users

            await first_users.take_over(path, stored.store)

    def _open_log_dirs(self, overrides: TopicOverrides) -> LogDirs:
        loop = asyncio.get_running_loop()

        def failed(directory: str, lost: list[tuple[str, int]]) -> None:
            # Continue in the event loop's thread, because any thread may call this function.
            loop.call_soon_threadsafe(self._disk_failed, lost)

        log_dirs = self._log_dirs = LogDirs(
            self.config.log_dirs,
            clock=self._clock,
            config_for=overrides.log_config,
            filesystem=self._hooks.filesystem or RealFilesystem(syncs=self._hooks.syncs),
            on_failure=failed,
            new_worker=self._hooks.new_worker
            or (lambda path: ThreadWorker(f"log-dir {path}", loop.call_soon_threadsafe)),
        )
        log_directories.lock(log_dirs)
        log_directories.finish_return(log_dirs)
        return log_dirs

    def _new_context(
        self,
        stored: StoreConnection,
        log_dirs: LogDirs,
        overrides: TopicOverrides,
        entrances: Entrances | None,
    ) -> BrokerContext:
        loop = asyncio.get_running_loop()
        metadata = MetadataCache(stored.cluster_id, self.config.broker_id)
        counts = Counts()
        for subscriber in (*self._subscribers, counts.on_metadata):
            metadata.feed.subscribe(subscriber)
        return BrokerContext(
            config=self.config,
            clock=self._clock,
            store=stored.store,
            metadata=metadata,
            log_dirs=log_dirs,
            flusher=Flusher(loop),
            dynamic_settings=DynamicSettings(self.config, stored.store, metadata),
            topic_overrides=overrides,
            group_configs=GroupConfigManager(self.config, stored.store, metadata.feed),
            leaderships=self._leaderships,
            long_work=LongWork(loop),
            call_soon=loop.call_soon,
            end_broker=self._end,
            entity_changes=EntityChanges(self._tasks),
            broker_security=_plaintext if entrances is None else entrances.broker_security,
            counts=counts,
        )

    def _registration(self, addresses: Addresses) -> BrokerInfo:
        protocols = {listener.name: listener.security_protocol for listener in self.config.listeners}
        endpoints = (
            Endpoint(name, host, port, protocols[name]) for name, (host, port) in addresses.own().items()
        )
        return BrokerInfo(self.config.broker_id, tuple(endpoints), self.config.str("broker.rack"))

    async def catch_up(self) -> None:
        """Run every periodic maintenance job now, whether or not it is due, and wait for the jobs."""
        if self._running is not None:
            await self._running.maintenance.do_all()

    async def compact(self, partition: Partition) -> None:
        """Compact a partition's log now."""
        if self._running is not None:
            await self._running.maintenance.compact(partition)

    async def at_rest(self) -> None:
        """Wait until the disk workers have completed all operations requested so far."""
        if self._log_dirs is not None:
            for path in self._log_dirs.directories:
                await finished(partial(self._log_dirs.when_idle, path))

    @property
    def cleaner(self) -> LogCleaner | None:
        """The log cleaner, or None until a log can be compacted."""
        return None if self._running is None else self._running.maintenance.cleaner

    @property
    def server(self) -> Server:
        """The server for client connections."""
        assert self._server is not None
        return self._server

    def _end(self) -> None:
        self.on_fatal()

    def _disk_failed(self, lost: list[tuple[str, int]]) -> None:
        assert self._log_dirs is not None
        if lost:
            services = self.services
            for topic, partition in lost:
                self._leaderships.stopping(topic, partition)
            services.replicas.take_offline(lost)
            self.membership.report_offline(lost)
        if self._running is not None and len(self._log_dirs.offline) == len(self._log_dirs.directories):
            log.critical("Stopping the broker: every log directory is offline. Check the disks")
            self.on_fatal()

    def stop_waiting(self) -> None:
        """Let `start` fail instead of waiting for other brokers or voters."""
        self.membership.stop_waiting()

    async def shut_down_controlled(self) -> None:
        """Move leadership to other brokers, unless the broker is standalone."""
        await self.membership.shut_down_controlled()

    async def stop(self, *, controlled: bool = True, timeout_s: float | None = None) -> None:
        """Stop the broker. Returns when all data is on disk and every log directory has a clean-shutdown
        marker, unless `keeps_data` is false.

        If `controlled` is true, leadership moves to other brokers first. `timeout_s` limits the time of the
        steps before the logs are closed. Raises TimeoutError, and leaves the logs as they are, if it is
        exceeded.
        """
        running, self._running = self._running, None
        if running is None:
            return
        stop_log = _StopLog(self.broker_id, self._clock.monotonic_ms)
        async with asyncio.timeout(timeout_s):
            if controlled:
                await self.membership.shut_down_controlled()
            await self.membership.leave()
            running.server.stop_accepting()
            stop_log.done("stopped accepting connections")
            connections = len(running.server.connections)
            await self._stop_serving(running)
        stop_log.done(f"ended background tasks, closed {connections} connection{'s' * (connections != 1)}")
        log_dirs = running.context.log_dirs
        count = len(log_dirs.logs)
        if self.keeps_data:
            # Closing syncs every log with new records. Other brokers of this process keep running meanwhile.
            close = partial(log_dirs.close, self.services.replicas.high_watermarks())
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, close))
        else:
            log_dirs.abandon()
        stop_log.done(f"closed {count} log{'s' * (count != 1)}")
        stop_log.over()

    async def suspend(self) -> Sockets:
        """Drop the broker's state, as if the process were killed, but keep its listening sockets for
        `resume`. Clients are disconnected, and new connections wait. Raises StartupError if the broker is not
        running.
        """
        running, self._running = self._running, None
        if running is None:
            raise StartupError("the broker does not serve")
        sockets = running.server.give_up_sockets()
        await self.membership.leave()
        await self._stop_serving(running)
        running.context.log_dirs.abandon()
        self._tasks = Tasks(self._end)
        self._leaderships = Leaderships()
        self._restarts += 1
        if self._restarts % _STARTS_PER_COLLECTION == 0:
            # Unfreeze the objects of earlier runs, so that the next startup collects their reference cycles.
            gc.unfreeze()
        return sockets

    def drop_waiting(self, sockets: Sockets) -> None:
        """Disconnect the clients that have connected since `suspend`."""
        for _, listening in sockets:
            with suppress(BlockingIOError):
                while True:
                    listening.accept()[0].close()

    async def resume(self, sockets: Sockets) -> None:
        """Start again after `suspend`, with the current log directories. Raises StartupError on failure."""
        try:
            self._running = await self._start(sockets)
        except BaseException:
            await self._abandon()
            self._end()
            raise

    async def _stop_serving(self, running: _Running) -> None:
        """Stop all parts except the logs."""
        running.maintenance.stop()
        await self._tasks.close()
        services = self.services
        services.coordinators.close()
        await services.long_work.finish(services.replicas.resign_all())
        await running.dispatcher.stop()
        services.long_work.close()
        running.server.stop()
        await asyncio.sleep(0)
        running.context.flusher.close()
        await self.membership.close()

    async def _abandon(self) -> None:
        """Release the resources of a failed startup."""
        if self._server is not None:
            self._server.stop()
        await self._tasks.close()
        await self.membership.leave()
        await self.membership.close()
        if self._log_dirs is not None:
            self._log_dirs.unlock()


class _Running:
    """The parts of a started broker that must be stopped."""

    def __init__(
        self, server: Server, dispatcher: Dispatcher, context: BrokerContext, maintenance: Maintenance
    ) -> None:
        self.server = server
        self.dispatcher = dispatcher
        self.context = context
        self.maintenance = maintenance


class _StopLog:
    """Log lines for the steps of a broker's shutdown, with the duration of each step."""

    def __init__(self, broker_id: int, monotonic_ms: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self._monotonic_ms = monotonic_ms
        self._began_ms = self._step_began_ms = monotonic_ms()

    def done(self, step: str) -> None:
        """Log that a step is complete, and begin to time the next step."""
        now_ms = self._monotonic_ms()
        log.info("Broker %d is stopping: %s (%d ms)", self._broker_id, step, now_ms - self._step_began_ms)
        self._step_began_ms = now_ms

    def over(self) -> None:
        """Log that all steps are complete."""
        log.info("Broker %d stopped (%d ms)", self._broker_id, self._step_began_ms - self._began_ms)


def _plaintext() -> BrokerSecurity:
    from kafka_compat.security.broker_security import NONE

    return NONE


def _limit_connections(config: BrokerConfig, server: Server, rates: Lazy[ConnectionRates]) -> None:
    name = "max.connection.creation.rate"
    rate, of_listeners = config.int(name), by_listener(config, name)
    if rates.made is not None or min(rate, *of_listeners.values()) < UNLIMITED:
        rates.get().limit(rate, of_listeners)
    server.set_limits(limits(config))
