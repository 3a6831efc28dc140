"""Kafka's metrics of replicas: followers, moves between log directories, and individual partitions.

Followers: kafka.server:type=ReplicaFetcherManager, FetcherStats and FetcherLagMetrics. Moves:
type=ReplicaAlterLogDirsManager. Partitions: kafka.cluster:type=Partition and kafka.log:type=Log. Most samples
are for partitions. Their families are created one by one, so that only one is in memory at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import Bean, Dialect, Tags
from kafka_compat.metrics.family import Family, Labels

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView, RunningBroker
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_fetcher import ReplicaFetcher

_REPLICA: Final[Tags] = {"clientId": "Replica"}
_MOVES: Final[Tags] = {"clientId": "ReplicaAlterLogDirs"}


class Fetching(NamedTuple):
    """A replica fetcher of a broker in this process."""

    each: RunningBroker
    leader_id: int
    number: int
    fetcher: ReplicaFetcher

    @property
    def client_id(self) -> str:
        """The fetcher's client ID: the name of the corresponding thread in Kafka."""
        return f"ReplicaFetcherThread-{self.number}-{self.leader_id}"


def fetching(brokers: Sequence[RunningBroker]) -> Iterator[Fetching]:
    """Yield the active replica fetchers of these brokers."""
    for each in brokers:
        fetchers = each.services.replicas.fetching
        if fetchers is None:
            continue
        for leader_id, number, fetcher in fetchers.running():
            yield Fetching(each, leader_id, number, fetcher)


def fetchers(brokers: Sequence[RunningBroker], beans: Beans) -> Steps[None]:
    """Add the lag of followers in this process, and the rates of their fetchers."""
    now_s = time.monotonic()
    rates = []
    max_lag = failed = 0
    running = list(fetching(brokers))
    for one in running:
        rates.append(one.fetcher.rate(now_s))
        tags = {"clientId": one.client_id, **_address(one)}
        beans.counter(_of("FetcherStats", "RequestsPerSec"), one.fetcher.requests, tags)
        beans.counter(_of("FetcherStats", "BytesPerSec"), one.fetcher.follower.fetched_bytes, tags)
        for some in batched(one.fetcher.follower, 200):
            max_lag = max([max_lag, *(held.lag for held in some)])
            yield None
    for each in brokers:
        own = [one.fetcher.follower for one in running if one.each is each]
        for some in batched(each.services.replicas, 200):
            for held in some:
                follows = not held.is_leader and held.leader_id >= 0
                failed += follows and not any(held in follower for follower in own)
            yield None
    manager = "ReplicaFetcherManager"
    beans.gauge(_of(manager, "MaxLag"), max_lag, _REPLICA)
    beans.gauge(_of(manager, "MinFetchRate"), min(rates, default=0), _REPLICA)
    # Count partitions that should be fetched, but have a fenced leader epoch or a failed disk.
    beans.gauge(_of(manager, "FailedPartitionsCount"), failed, _REPLICA)
    # This is always 0: a failing fetcher does not end, but retries the same partitions.
    beans.gauge(_of(manager, "DeadThreadCount"), 0, _REPLICA)


def throttled(brokers: Sequence[RunningBroker], beans: Beans) -> None:
    """Add the rates of throttled replication (KIP-73)."""
    for each in brokers:
        quotas, now_ms = each.services.replicas.quotas, each.services.clock.monotonic_ms()
        beans.attribute("LeaderReplication", "byte-rate", quotas.leader.rate(now_ms))
        beans.attribute("FollowerReplication", "byte-rate", quotas.follower.rate(now_ms))


def moves(brokers: Sequence[RunningBroker], beans: Beans) -> None:
    """Add the metrics of moves between log directories, such as the largest lag of a copy."""
    max_lag = 0
    for each in brokers:
        logs = each.services.log_dirs.logs
        for key, future in list(each.services.log_dirs.futures.items()):
            log = logs.get(key)
            if log is not None:
                max_lag = max(max_lag, log.log_end_offset - future.log_end_offset)
    beans.gauge(_of("ReplicaAlterLogDirsManager", "MaxLag"), max_lag, _MOVES)
    # This is always 0: a failed move is logged and retried or abandoned, but never ends a thread.
    beans.gauge(_of("ReplicaAlterLogDirsManager", "DeadThreadCount"), 0, _MOVES)


def lags(brokers: Sequence[RunningBroker], dialect: Dialect) -> Steps[list[Family]]:
    """Return the lag in records of each followed partition, as of the leader's last response. If several
    brokers of this process follow a partition, return the largest lag.
    """
    bean = _of("FetcherLagMetrics", "ConsumerLag")
    (series,) = dialect.gauges(bean)
    client, found = dialect.label("clientId"), dict[Labels, int]()
    for one in fetching(brokers):
        for some in batched(one.fetcher.follower, 100):
            for held in some:
                tags = {client: one.client_id, "topic": held.topic, "partition": str(held.partition)}
                labels = Labels.of(tags)
                found[labels] = max(held.lag, found.get(labels, 0))
            yield None
    return [Family(*series, bean.help, found.items())] if found else []


def _address(one: Fetching) -> dict[str, str]:
    """Return a label with the leader's inter-broker address, as in the exporter's rules."""
    services = one.each.services
    leader = services.metadata.brokers.get(one.leader_id)
    listener = services.config.inter_broker_listener
    host, port = ("", -1) if leader is None else leader.endpoints.get(listener, ("", -1))
    return {"broker": f"{host}:{port}"}


def _of(type_name: str, name: str) -> Bean:
    return Bean("server", type_name, name)


_AT_ONCE: Final = 100
"""Number of partitions between two yields, which take about 100 µs."""


class Held(NamedTuple):
    """A partition with a replica in this process, preferably the leader."""

    labels: Labels
    partition: Partition
    replicas: int
    """Number of replicas if this replica is the leader, or else 0, as in Kafka."""


def held_partitions(view: ClusterView) -> Steps[list[Held]]:
    """Return all partitions with replicas in this process, with their labels."""
    found: list[Held] = []
    for topic in list(view.metadata.topics.values()):
        of_topic = Labels((("topic", topic.name),))
        for some in batched(topic.partitions, _AT_ONCE):
            for known in some:
                held = view.held(topic.name, known)
                if held is not None:
                    labels = of_topic.with_number("partition", known.partition)
                    found.append(Held(labels, held, len(known.replicas) if held.is_leader else 0))
            yield None
    return found


def partition_families(dialect: Dialect, partitions: list[Held]) -> Iterator[Family]:
    """Yield the families of partitions one by one. Their samples are computed during serialization."""
    for bean, value in FAMILIES:
        (series,) = dialect.gauges(bean)
        yield Family(*series, bean.help, ((held.labels, value(held)) for held in partitions))


Value = Callable[[Held], int]


def _at_min_isr(held: Held) -> int:
    partition = held.partition
    return int(partition.is_leader and len(partition.isr) == partition.min_insync_replicas)


def _under_min_isr(held: Held) -> int:
    partition = held.partition
    return int(partition.is_leader and len(partition.isr) < partition.min_insync_replicas)


def _stable_lag(held: Held) -> int:
    return max(held.partition.high_watermark - held.partition.last_stable_offset, 0)


def _cluster(name: str) -> Bean:
    return Bean("cluster", "Partition", name)


def _log(name: str) -> Bean:
    return Bean("log", "Log", name)


FAMILIES: Final[tuple[tuple[Bean, Value], ...]] = (
    (_cluster("AtMinIsr"), _at_min_isr),
    (_cluster("InSyncReplicasCount"), lambda held: len(held.partition.isr)),
    (_cluster("LastStableOffsetLag"), _stable_lag),
    (_cluster("ReplicasCount"), lambda held: held.replicas),
    (_cluster("UnderMinIsr"), _under_min_isr),
    (_cluster("UnderReplicated"), lambda held: int(len(held.partition.isr) < held.replicas)),
    (_log("LogEndOffset"), lambda held: held.partition.log.log_end_offset),
    (_log("LogStartOffset"), lambda held: held.partition.log.log_start_offset),
    (_log("NumLogSegments"), lambda held: held.partition.log.segment_count),
    (_log("Size"), lambda held: held.partition.log.size_bytes),
)
