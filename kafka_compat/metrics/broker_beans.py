"""Kafka's broker metrics: replicas, connections, disks, compaction, ZooKeeper, idleness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.coordination.store.metadata_store import SessionState
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.cluster_view import zookeeper_of
from kafka_compat.metrics.dialects import Bean, Tags
from kafka_compat.network.strangers import FAILED, FAILED_AGAIN, PASSED, PASSED_AGAIN
from kafka_compat.upkeep.cleaner_stats import NEVER

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
    from kafka_compat.metrics.cluster_view import ClusterView, RunningBroker
    from kafka_compat.network.server import Server
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.upkeep.cleaner_stats import Cleaning

_RUNNING: Final = 3
"""Kafka's number for the state of a running broker."""
_LATE_MS: Final = 300_000
"""Time that a transaction may stay open beyond transaction.max.timeout.ms before it counts as late."""
PROCESSOR: Final[Tags] = {"networkProcessor": "0"}
"""Tags of the only network processor: there is one event loop."""


def broker(running: RunningBroker, beans: Beans) -> Steps[None]:
    """Add the metrics of one broker."""
    yield from _replicas(running, beans)
    yield from _connections(running.server, beans)
    _waiting(running.services.replicas, beans)
    _network(running.server, beans)
    _disks(running.services, beans)
    for fetcher, count in running.partitions.expired_fetches.items():
        beans.counter(Bean("server", "DelayedFetchMetrics", "ExpiresPerSec"), count, {"fetcherType": fetcher})
    sessions = running.services.fetch_sessions
    beans.gauge(_fetch_sessions("NumIncrementalFetchSessions"), len(sessions))
    beans.gauge(_fetch_sessions("NumIncrementalFetchPartitionsCached"), sessions.partition_count)
    beans.counter(_fetch_sessions("IncrementalFetchSessionEvictionsPerSec"), sessions.evictions)
    beans.gauge(Bean("server", "KafkaServer", "BrokerState"), _RUNNING)


def _replicas(running: RunningBroker, beans: Beans) -> Steps[None]:
    services = running.services
    metadata = services.metadata
    seen: Counter[str] = Counter()
    producers = 0
    late_ms = services.clock.now_ms() - services.config.int("transaction.max.timeout.ms") - _LATE_MS
    for some in batched(services.replicas, 100):
        for held in some:
            seen["PartitionCount"] += 1
            producers += len(held.log.producers.entries)
            if held.is_leader:
                known = metadata.partition(held.topic, held.partition)
                _led(held, 0 if known is None else len(known.replicas), seen)
                seen["PartitionsWithLateTransactionsCount"] += held.log.producers.has_open_since(late_ms)
                seen["ReassigningPartitions"] += (held.topic, held.partition) in services.replicas.reassigning
        yield None
    for name in (
        "PartitionCount",
        "LeaderCount",
        "UnderReplicatedPartitions",
        "UnderMinIsrPartitionCount",
        "AtMinIsrPartitionCount",
        "PartitionsWithLateTransactionsCount",
        "ReassigningPartitions",
    ):
        beans.gauge(_replica_manager(name), seen[name])
    beans.gauge(_replica_manager("OfflineReplicaCount"), services.replicas.offline_count)
    beans.gauge(_replica_manager("ProducerIdCount"), producers)
    beans.counter(_replica_manager("IsrShrinksPerSec"), running.partitions.isr_shrinks)
    beans.counter(_replica_manager("IsrExpandsPerSec"), running.partitions.isr_expands)
    beans.counter(_replica_manager("FailedIsrUpdatesPerSec"), running.partitions.isr_refusals)


def _led(held: Partition, replicas: int, seen: Counter[str]) -> None:
    synced, least = len(held.isr), held.min_insync_replicas
    seen["LeaderCount"] += 1
    seen["UnderReplicatedPartitions"] += synced < replicas
    seen["UnderMinIsrPartitionCount"] += synced < least
    seen["AtMinIsrPartitionCount"] += synced == least


def _connections(server: Server, beans: Beans) -> Steps[None]:
    by_listener: Counter[str] = Counter(dict.fromkeys(server.bound, 0))
    by_software: Counter[tuple[str, str, str]] = Counter()
    unsent = 0
    for some in batched(list(server.connections), 200):
        for one in some:
            by_listener[one.listener_name] += 1
            by_software[one.listener_name, one.session.software_name, one.session.software_version] += 1
            unsent += one.answer_bytes > 0
        yield None
    for listener, count in by_listener.items():
        tags = {"listener": listener, **PROCESSOR}
        beans.socket("connection_count", count, tags)
        beans.socket("connection_creation_total", server.accepted.get(listener, 0), tags)
        beans.socket("connection_close_total", server.accepted.get(listener, 0) - count, tags)
        for kind in (PASSED, PASSED_AGAIN, FAILED, FAILED_AGAIN):
            beans.socket(f"{kind}-total".replace("-", "_"), server.authentications.of(listener, kind), tags)
        beans.counter(Bean("network", "Acceptor", "AcceptorBlockedPercent"), 0, {"listener": listener})
    for (listener, name, version), count in by_software.items():
        software = {"clientSoftwareName": name, "clientSoftwareVersion": version}
        beans.socket("connections_software", count, {"listener": listener, **PROCESSOR, **software})
    queue = Bean("network", "RequestChannel", "ResponseQueueSize")
    beans.gauge(queue, unsent)
    beans.gauge(queue, unsent, {"processor": "0"})


def _waiting(replicas: ReplicaManager, beans: Beans) -> None:
    for operation, count in (
        ("Fetch", len(replicas.delayed_fetches)),
        ("Produce", replicas.delayed_produces),
    ):
        tags = {"delayedOperation": operation}
        beans.gauge(Bean("server", "DelayedOperationPurgatory", "PurgatorySize"), count, tags)
        beans.gauge(Bean("server", "DelayedOperationPurgatory", "NumDelayedOperations"), count, tags)


def _network(server: Server, beans: Beans) -> None:
    beans.gauge(Bean("network", "RequestChannel", "RequestQueueSize"), server.turns.waiting)
    expired = Bean("network", "SocketServer", "ExpiredConnectionsKilledCount")
    beans.gauge(expired, server.authentications.expired)
    budget = server.request_budget
    beans.gauge(Bean("network", "SocketServer", "MemoryPoolUsed"), budget.used_bytes)
    available = max(budget.limit_bytes - budget.used_bytes, 0)
    beans.gauge(Bean("network", "SocketServer", "MemoryPoolAvailable"), available)


def _disks(services: BrokerServices, beans: Beans) -> None:
    offline = services.log_dirs.offline
    beans.gauge(Bean("log", "LogManager", "OfflineLogDirectoryCount"), len(offline))
    for path in services.log_dirs.directories:
        # In Kafka, the quotation marks are part of the value.
        tags = {"logDirectory": f'"{path}"'}
        beans.gauge(Bean("log", "LogManager", "LogDirectoryOffline"), int(path in offline), tags)


def flushes(view: ClusterView, beans: Beans) -> None:
    """Add the durations of log flushes."""
    disks = [disk for services in view.services for disk in services.log_dirs.disks]
    ordered = sorted(took_ms for disk in disks for took_ms in list(disk.flush_times_ms))
    bean = Bean("log", "LogFlushStats", "LogFlushRateAndTimeMs")
    beans.distribution(bean, sum(disk.flushes for disk in disks), ordered)


_NAMES = {
    SessionState.CONNECTED: "SyncConnects",
    SessionState.SUSPENDED: "Disconnects",
    SessionState.EXPIRED: "Expires",
}
_NEVER = ("AuthFailures", "ReadOnlyConnects")
"""Counts of events that cannot occur: failed authentication aborts startup, and no session is read-only."""


class ZooKeeperSessions:
    """Counts of ZooKeeper session events in this process, by Kafka's names, since the HTTP listener started.

    Call `look` every second to detect replaced sessions.
    """

    def __init__(self, brokers: Sequence[Broker]) -> None:
        """Create this object after the brokers have started."""
        self.counts = dict.fromkeys((*_NAMES.values(), *_NEVER), 0)
        self.requests = 0
        """Number of requests sent by sessions that have ended."""
        self._brokers = brokers
        self._heard: dict[int, ZooKeeperMetadataStore] = {}
        """The observed session of each broker, by broker ID."""
        self.look()

    @property
    def are_any(self) -> bool:
        return bool(self._heard)

    def look(self) -> None:
        """Observe the sessions that were opened since the last call."""
        for broker in self._brokers:
            session = zookeeper_of(broker.services) if broker.is_running else None
            before = self._heard.get(broker.broker_id)
            if session is None or session is before:
                continue
            if before is not None:
                self.requests += before.requests
            self._heard[broker.broker_id] = session
            self.counts["SyncConnects"] += 1
            session.on_state(self._changed)

    def _changed(self, state: SessionState) -> None:
        name = _NAMES.get(state)
        if name is not None:
            self.counts[name] += 1


def zookeeper(view: ClusterView, sessions: ZooKeeperSessions, beans: Beans) -> None:
    """Add the metrics of the ZooKeeper sessions, if there are any."""
    if not sessions.are_any:
        return
    for name, count in sessions.counts.items():
        beans.counter(Bean("server", "SessionExpireListener", f"ZooKeeper{name}PerSec"), count)
    stores = list(view.zookeepers())
    ordered = sorted(took_ms for store in stores for took_ms in store.request_times_ms)
    bean = Bean("server", "ZooKeeperClientMetrics", "ZooKeeperRequestLatencyMs")
    beans.distribution(bean, sessions.requests + sum(store.requests for store in stores), ordered)


def idleness(beans: Beans, share: float, idle_s: float) -> None:
    """Add the event loop's idle share as the idle ratio of network processors and request handlers."""
    beans.idle(share)
    beans.gauge(Bean("network", "SocketServer", "NetworkProcessorAvgIdlePercent"), share)
    beans.gauge(Bean("network", "Processor", "IdlePercent"), share, PROCESSOR)
    handlers = Bean("server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent")
    beans.counter(handlers, int(idle_s * 1e9))


def _replica_manager(name: str) -> Bean:
    return Bean("server", "ReplicaManager", name)


def _fetch_sessions(name: str) -> Bean:
    return Bean("server", "FetchSessionCache", name)


def cleaner(brokers: Sequence[RunningBroker], beans: Beans) -> None:
    """Add the metrics of compaction, if log.cleaner.enable is true for any broker.

    The values are from the last check or cleaning. With several brokers in one process, the maximum is
    reported, like Kafka's maximum over its cleaner threads.
    """
    enabled = [each for each in brokers if each.services.config.bool("log.cleaner.enable")]
    if not enabled:
        return
    stats = [each.cleaner.stats for each in enabled if each.cleaner is not None]
    last = [each.last for each in stats if each.last is not None]
    beans.gauge(_cleaner("cleaner-recopy-percent"), _recopied_percent(last))
    fullest = max((each.utilization for each in last), default=0.0)
    beans.gauge(_cleaner("max-buffer-utilization-percent"), int(100 * fullest))
    beans.gauge(_cleaner("max-clean-time-secs"), max((each.took_ms for each in last), default=0) // 1000)
    overdue_ms = max((each.overdue_ms for each in stats), default=0)
    beans.gauge(_cleaner("max-compaction-delay-secs"), overdue_ms // 1000)
    dirtiest = max((each.dirtiest_ratio for each in stats), default=0.0)
    beans.gauge(_cleaner_manager("max-dirty-percent"), int(100 * dirtiest))
    # This is always 0, because a failed worker process is replaced.
    beans.gauge(_cleaner("DeadThreadCount"), 0)
    idle_ms = [ms for each in enabled for ms in _idle_ms(each)]
    if idle_ms:
        beans.gauge(_cleaner_manager("time-since-last-run-ms"), max(idle_ms))
    _uncleanable(enabled, beans)


def _recopied_percent(last: Sequence[Cleaning]) -> int:
    """Return the percentage of bytes that the last cleanings kept."""
    written_bytes = sum(each.written_bytes for each in last)
    return int(100 * written_bytes / max(sum(each.read_bytes for each in last), 1))


def _idle_ms(each: RunningBroker) -> list[int]:
    """Return [milliseconds since the cleaner last checked the logs], or [] before its first check."""
    stats = None if each.cleaner is None else each.cleaner.stats
    if stats is None or stats.looked_ms == NEVER:
        return []
    return [each.services.clock.monotonic_ms() - stats.looked_ms]


def _uncleanable(enabled: Sequence[RunningBroker], beans: Beans) -> None:
    partitions: Counter[str] = Counter()
    bytes_left: Counter[str] = Counter()
    for each in enabled:
        for path in each.services.log_dirs.directories:
            partitions[path] += 0
        for log, dirty_bytes in [] if each.cleaner is None else each.cleaner.uncleanable():
            partitions[log.disk.path] += 1
            bytes_left[log.disk.path] += dirty_bytes
    for path, count in partitions.items():
        tags = {"logDirectory": f'"{path}"'}
        beans.gauge(_cleaner_manager("uncleanable-partitions-count"), count, tags)
        beans.gauge(_cleaner_manager("uncleanable-bytes"), bytes_left[path], tags)


def _cleaner(name: str) -> Bean:
    return Bean("log", "LogCleaner", name)


def _cleaner_manager(name: str) -> Bean:
    return Bean("log", "LogCleanerManager", name)
