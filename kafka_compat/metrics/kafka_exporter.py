"""Topics and groups by the names of kafka_exporter (github.com/danielqsj/kafka_exporter), and a few more.

As in kafka_exporter, a group shows each partition of a topic in which it has committed any: with -1 where it
has not committed. What is unknown is left out, and so are the sums that it belongs to.

Rows are collected in one pass, so that lags fit the offsets beside them; families are made of them one after
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.lag import longest, total_records
from kafka_compat.long_work import Steps
from kafka_compat.metrics.family import GAUGE, NO_LABELS, Family, Labels

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import GroupProgress
    from kafka_compat.metadata.cache import TopicMetadata
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.metrics.group_lag import GroupLags

_AT_ONCE = 50
"""Partitions of a step: some 500 µs."""

NOT_COMMITTED: Final = -1


class _Topic(NamedTuple):
    labels: Labels
    partitions: int
    current_offset_sum: int | None
    oldest_offset_sum: int | None
    under_replicated: int
    leaderless: int


class _Partition(NamedTuple):
    labels: Labels
    leader: int | None
    current_offset: int | None
    oldest_offset: int | None
    replicas: int
    in_sync: int
    leader_is_preferred: int


class _Group(NamedTuple):
    labels: Labels
    members: int
    lag_ms: int | None


class _GroupTopic(NamedTuple):
    labels: Labels
    committed_sum: int
    lag_sum: int | None


class _GroupPartition(NamedTuple):
    labels: Labels
    committed: int
    lag: int | None
    lag_ms: int | None


Column = tuple[str, str, Callable[[Any], float | None]]
"""Name and help of a family, and its value in a row; None: no sample."""

_PARTITION_COLUMNS: Final[Sequence[Column]] = (
    (
        "kafka_topic_partition_current_offset",
        "Current Offset of a Broker at Topic/Partition",
        lambda row: row.current_offset,
    ),
    (
        "kafka_topic_partition_oldest_offset",
        "Oldest Offset of a Broker at Topic/Partition",
        lambda row: row.oldest_offset,
    ),
    (
        "kafka_topic_partition_in_sync_replica",
        "Number of In-Sync Replicas for this Topic/Partition",
        lambda row: row.in_sync,
    ),
    (
        "kafka_topic_partition_leader",
        "Leader Broker ID of this Topic/Partition",
        lambda row: row.leader,
    ),
    (
        "kafka_topic_partition_leader_is_preferred",
        "1 if Topic/Partition is using the Preferred Broker",
        lambda row: row.leader_is_preferred,
    ),
    (
        "kafka_topic_partition_replicas",
        "Number of Replicas for this Topic/Partition",
        lambda row: row.replicas,
    ),
    (
        "kafka_topic_partition_under_replicated_partition",
        "1 if Topic/Partition is under Replicated",
        lambda row: int(row.in_sync < row.replicas),
    ),
)
_TOPIC_COLUMNS: Final[Sequence[Column]] = (
    ("kafka_topic_partitions", "Number of partitions for this Topic", lambda row: row.partitions),
    (
        "kafka_topic_current_offset_sum",
        "Current Offsets of all partitions of this Topic",
        lambda row: row.current_offset_sum,
    ),
    (
        "kafka_topic_oldest_offset_sum",
        "Oldest Offsets of all partitions of this Topic",
        lambda row: row.oldest_offset_sum,
    ),
    (
        "kafka_topic_under_replicated_partitions",
        "Number of partitions that lack In-Sync Replicas",
        lambda row: row.under_replicated,
    ),
    (
        "kafka_topic_leaderless_partitions",
        "Number of partitions without a leader",
        lambda row: row.leaderless,
    ),
)
_GROUP_COLUMNS: Final[Sequence[Column]] = (
    ("kafka_consumergroup_members", "Amount of members in a consumer group", lambda row: row.members),
    (
        "kafka_consumergroup_lag_seconds_max",
        "Age of the oldest record that a ConsumerGroup has not committed",
        lambda row: _seconds(row.lag_ms),
    ),
)
_GROUP_TOPIC_COLUMNS: Final[Sequence[Column]] = (
    (
        "kafka_consumergroup_current_offset_sum",
        "Current Offset of a ConsumerGroup at Topic for all partitions",
        lambda row: row.committed_sum,
    ),
    (
        "kafka_consumergroup_lag_sum",
        "Current Approximate Lag of a ConsumerGroup at Topic for all partitions",
        lambda row: row.lag_sum,
    ),
)
_GROUP_PARTITION_COLUMNS: Final[Sequence[Column]] = (
    (
        "kafka_consumergroup_current_offset",
        "Current Offset of a ConsumerGroup at Topic/Partition",
        lambda row: row.committed,
    ),
    (
        "kafka_consumergroup_lag",
        "Current Approximate Lag of a ConsumerGroup at Topic/Partition",
        lambda row: row.lag,
    ),
    (
        "kafka_consumergroup_lag_seconds",
        "Age of the first record that a ConsumerGroup has not committed at Topic/Partition",
        lambda row: _seconds(row.lag_ms),
    ),
)
PARTITION_FAMILIES: Final = len(_PARTITION_COLUMNS)
"""How many families have a sample for each partition."""


def _seconds(value_ms: int | None) -> float | None:
    return None if value_ms is None else value_ms / 1000


class KafkaExporter:
    """Collects the rows of one scrape."""

    def __init__(self, view: ClusterView, lags: GroupLags, *, by_partition: bool) -> None:
        """`by_partition=False`: without families that have a sample for each partition."""
        self._view = view
        self._lags = lags
        self._by_partition = by_partition
        self._topics: list[_Topic] = []
        self._partitions: list[_Partition] = []
        self._groups: list[_Group] = []
        self._group_topics: list[_GroupTopic] = []
        self._group_partitions: list[_GroupPartition] = []

    def collect(self) -> Steps[Iterator[Family]]:
        """Collect all rows; the families, with samples that are made when they are asked for."""
        for topic in list(self._view.metadata.topics.values()):
            yield from self._add_topic(topic)
        for coordinator in self._view.coordinators():
            for group_id in coordinator.group_ids():
                progress = coordinator.progress(group_id)
                if progress is not None:
                    yield from self._add_group(group_id, progress)
        return self._families()

    def _families(self) -> Iterator[Family]:
        brokers = self._view.metadata.brokers
        count = [(NO_LABELS, len(brokers))]
        yield Family("kafka_brokers", GAUGE, "Number of Brokers in the Kafka Cluster.", count)
        yield Family("kafka_broker_info", GAUGE, "Information about the Kafka Broker.", self._addresses())
        for columns, rows, is_wanted in (
            (_TOPIC_COLUMNS, self._topics, True),
            (_PARTITION_COLUMNS, self._partitions, self._by_partition),
            (_GROUP_COLUMNS, self._groups, True),
            (_GROUP_TOPIC_COLUMNS, self._group_topics, True),
            (_GROUP_PARTITION_COLUMNS, self._group_partitions, self._by_partition),
        ):
            for name, about, value in columns if is_wanted else ():
                yield Family(name, GAUGE, about, _samples(rows, value))

    def _addresses(self) -> Iterator[tuple[Labels, float]]:
        for broker in list(self._view.metadata.brokers.values()):
            address = self._view.address(broker)
            if address is not None:
                host, port = address
                shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                yield Labels((("address", shown), ("id", str(broker.broker_id)))), 1

    def _add_topic(self, topic: TopicMetadata) -> Steps[None]:
        name, metadata = topic.name, self._view.metadata
        of_topic = ("topic", name)
        current_sum: int | None = 0
        oldest_sum: int | None = 0
        leaderless = under_replicated = 0
        for count, known in enumerate(topic.partitions):
            if count % _AT_ONCE == 0:
                yield None
            leader, led = metadata.reachable_leader(known), self._view.led(name, known)
            current = None if led is None else led.known_high_watermark
            oldest = None if led is None else led.log.log_start_offset
            current_sum = None if current_sum is None or current is None else current_sum + current
            oldest_sum = None if oldest_sum is None or oldest is None else oldest_sum + oldest
            leaderless += leader is None
            replicas, in_sync = len(known.replicas), len(known.isr)
            under_replicated += in_sync < replicas
            if self._by_partition:
                labels = Labels((("partition", str(known.partition)), of_topic))
                is_preferred = int(leader is not None and leader == known.replicas[0])
                self._partitions.append(
                    _Partition(labels, leader, current, oldest, replicas, in_sync, is_preferred)
                )
        self._topics.append(
            _Topic(
                Labels((of_topic,)),
                len(topic.partitions),
                current_sum,
                oldest_sum,
                under_replicated,
                leaderless,
            )
        )

    def _add_group(self, group_id: str, progress: GroupProgress) -> Steps[None]:
        found_ms: list[int | None] = []
        yield None
        for name in dict.fromkeys(topic for topic, _ in progress.committed):
            topic = self._view.metadata.topics.get(name)
            if topic is not None:
                found_ms.append((yield from self._add_group_topic(group_id, progress, topic)))
        labels = Labels((("consumergroup", group_id),))
        self._groups.append(_Group(labels, progress.members, longest(found_ms)))

    def _add_group_topic(
        self, group_id: str, progress: GroupProgress, topic: TopicMetadata
    ) -> Steps[int | None]:
        """A group at a topic in which it has committed; its lag in time."""
        name = topic.name
        group, of_topic = ("consumergroup", group_id), ("topic", name)
        committed_sum = 0
        lags: list[int | None] = []
        lags_ms: list[int | None] = []
        for count, known in enumerate(topic.partitions):
            if count % _AT_ONCE == 0:
                yield None
            position = progress.committed.get((name, known.partition))
            committed: int = NOT_COMMITTED
            lag: int | None = NOT_COMMITTED
            lag_ms: int | None = None
            if position is not None:
                committed, lag, lag_ms = yield from self._lags.at(
                    group_id, name, known, position.value.offset
                )
                lags.append(lag)
                lags_ms.append(lag_ms)
            committed_sum += committed
            if self._by_partition:
                labels = Labels((group, ("partition", str(known.partition)), of_topic))
                self._group_partitions.append(_GroupPartition(labels, committed, lag, lag_ms))
        self._group_topics.append(_GroupTopic(Labels((group, of_topic)), committed_sum, total_records(lags)))
        return longest(lags_ms)


def _samples(rows: Iterable[Any], value: Callable[[Any], float | None]) -> Iterator[tuple[Labels, float]]:
    for row in rows:
        found = value(row)
        if found is not None:
            yield row.labels, found
