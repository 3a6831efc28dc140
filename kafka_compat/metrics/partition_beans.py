"""What Kafka tells of single partitions: kafka.cluster:type=Partition and kafka.log:type=Log.

It is most of what there is to say, and is said family after family: a piece that was sent is not kept until
the last one is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.dialects import Bean, Dialect
from kafka_compat.metrics.text import Family, escaped

if TYPE_CHECKING:
    from kafka_compat.metrics.sight import Sight
    from kafka_compat.replication.partition import Partition

_AT_ONCE: Final = 100
"""Samples of a step: some 100 µs."""


class Held(NamedTuple):
    """A partition that a broker of this process holds; of several replicas here it is the leader's."""

    labels: str
    partition: Partition
    replicas: int
    """How many there are, where this is the leader; else 0, as Kafka has it."""


def held_partitions(sight: Sight) -> Steps[list[Held]]:
    """All of them, with their labels as samples have them."""
    found: list[Held] = []
    for topic in list(sight.metadata.topics.values()):
        of_topic = f'topic="{escaped(topic.name)}"}}'
        for some in batched(topic.partitions, _AT_ONCE):
            for known in some:
                held = sight.held(topic.name, known)
                if held is not None:
                    labels = f'{{partition="{known.partition}",{of_topic}'
                    found.append(Held(labels, held, len(known.replicas) if held.is_leader else 0))
            yield None
    return found


def family(bean: Bean, value: Value, dialect: Dialect, partitions: list[Held]) -> Steps[list[bytes]]:
    """The text of one family."""
    (series,) = dialect.gauges(bean)
    written = Family(series.name, bean.help, series.kind)
    for some in batched(partitions, _AT_ONCE):
        for held in some:
            written.add(held.labels, value(held))
        yield None
    return written.pieces()


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
