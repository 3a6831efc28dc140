"""Kafka's metrics of single partitions: kafka.cluster:type=Partition and kafka.log:type=Log.

These are most of all samples. Families are made one after another, so that none is kept until the last one
is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.dialects import Bean, Dialect
from kafka_compat.metrics.family import Family, Labels

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.replication.partition import Partition

_AT_ONCE: Final = 100
"""Partitions of a step: some 100 µs."""


class Held(NamedTuple):
    """A partition that a broker of this process holds; of several replicas here it is the leader's."""

    labels: Labels
    partition: Partition
    replicas: int
    """How many there are, where this is the leader; else 0, as Kafka has it."""


def held_partitions(view: ClusterView) -> Steps[list[Held]]:
    """All of them, with their labels."""
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
    """One after another, with samples that are computed when they are written."""
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
