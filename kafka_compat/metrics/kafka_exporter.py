"""Topic and group metrics, named as in github.com/danielqsj/kafka_exporter, and a few additional metrics.

As in kafka_exporter, a group with committed offsets for a topic has a sample for each partition of the topic;
-1 means no committed offset. Unknown values, and sums that include them, are omitted.

All rows are collected in one pass, so that lags match the offsets; the families are created one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.lag import longest, total_records
from kafka_compat.long_work import Steps
from kafka_compat.metrics.family import GAUGE, NO_LABELS, Family, Labels, Sample

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import GroupProgress
    from kafka_compat.metadata.cache import TopicMetadata
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.metrics.group_lag import GroupLags

_AT_ONCE = 50
"""Number of partitions between two yields, which take about 500 µs."""

NOT_COMMITTED: Final = -1


class _Table:
    """Rows of samples: labels, and one value for each family. `columns` maps the name suffixes of the
    families to their help texts. A value of None does not add a sample.
    """

    def __init__(self, prefix: str, columns: Mapping[str, str]) -> None:
        self._prefix = prefix
        self._columns = columns
        self._rows: list[tuple[Any, ...]] = []

    def add(self, labels: Labels, *values: float | None) -> None:
        self._rows.append((labels, *values))

    def families(self) -> Iterator[Family]:
        for column, (name, about) in enumerate(self._columns.items(), 1):
            yield Family(self._prefix + name, GAUGE, about, self._samples(column))

    def _samples(self, column: int) -> Iterator[Sample]:
        return ((row[0], row[column]) for row in self._rows if row[column] is not None)


_TOPICS: Final = {
    "partitions": "Number of partitions for this Topic",
    "current_offset_sum": "Current Offsets of all partitions of this Topic",
    "oldest_offset_sum": "Oldest Offsets of all partitions of this Topic",
    "under_replicated_partitions": "Number of partitions that lack In-Sync Replicas",
    "leaderless_partitions": "Number of partitions without a leader",
}
_PARTITIONS: Final = {
    "current_offset": "Current Offset of a Broker at Topic/Partition",
    "oldest_offset": "Oldest Offset of a Broker at Topic/Partition",
    "in_sync_replica": "Number of In-Sync Replicas for this Topic/Partition",
    "leader": "Leader Broker ID of this Topic/Partition",
    "leader_is_preferred": "1 if Topic/Partition is using the Preferred Broker",
    "replicas": "Number of Replicas for this Topic/Partition",
    "under_replicated_partition": "1 if Topic/Partition is under Replicated",
}
_GROUPS: Final = {
    "members": "Amount of members in a consumer group",
    "lag_seconds_max": "Age of the oldest record that a ConsumerGroup has not committed",
}
_GROUP_TOPICS: Final = {
    "current_offset_sum": "Current Offset of a ConsumerGroup at Topic for all partitions",
    "lag_sum": "Current Approximate Lag of a ConsumerGroup at Topic for all partitions",
}
_GROUP_PARTITIONS: Final = {
    "current_offset": "Current Offset of a ConsumerGroup at Topic/Partition",
    "lag": "Current Approximate Lag of a ConsumerGroup at Topic/Partition",
    "lag_seconds": "Age of the first record that a ConsumerGroup has not committed at Topic/Partition",
}


class KafkaExporter:
    """Collector of the rows of one scrape."""

    def __init__(self, view: ClusterView, lags: GroupLags, *, by_partition: bool) -> None:
        """`by_partition=False` omits families with a sample per partition."""
        self._view = view
        self._lags = lags
        self._by_partition = by_partition
        self._topics = _Table("kafka_topic_", _TOPICS)
        self._partitions = _Table("kafka_topic_partition_", _PARTITIONS)
        self._groups = _Table("kafka_consumergroup_", _GROUPS)
        self._group_topics = _Table("kafka_consumergroup_", _GROUP_TOPICS)
        self._group_partitions = _Table("kafka_consumergroup_", _GROUP_PARTITIONS)

    def collect(self) -> Steps[Iterator[Family]]:
        """Collect all rows, and return the families, whose samples are created on demand."""
        for topic in list(self._view.metadata.topics.values()):
            yield from self._add_topic(topic)
        for coordinator in self._view.coordinators():
            for group_id in coordinator.group_ids():
                progress = coordinator.progress(group_id)
                if progress is not None:
                    yield from self._add_group(group_id, progress)
        return self._families()

    def _families(self) -> Iterator[Family]:
        count = [(NO_LABELS, len(self._view.metadata.brokers))]
        yield Family("kafka_brokers", GAUGE, "Number of Brokers in the Kafka Cluster.", count)
        yield Family("kafka_broker_info", GAUGE, "Information about the Kafka Broker.", self._addresses())
        yield from self._topics.families()
        if self._by_partition:
            yield from self._partitions.families()
        yield from self._groups.families()
        yield from self._group_topics.families()
        if self._by_partition:
            yield from self._group_partitions.families()

    def _addresses(self) -> Iterator[tuple[Labels, float]]:
        for broker in list(self._view.metadata.brokers.values()):
            address = self._view.address(broker)
            if address is not None:
                host, port = address
                shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                yield Labels((("address", shown), ("id", str(broker.broker_id)))), 1

    def _add_topic(self, topic: TopicMetadata) -> Steps[None]:
        name, metadata = topic.name, self._view.metadata
        of_topic = Labels((("topic", name),))
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
                labels = of_topic.with_number("partition", known.partition)
                is_preferred = int(leader is not None and leader == known.replicas[0])
                lacks = int(in_sync < replicas)
                self._partitions.add(labels, current, oldest, in_sync, leader, is_preferred, replicas, lacks)
        sums = current_sum, oldest_sum
        self._topics.add(of_topic, len(topic.partitions), *sums, under_replicated, leaderless)

    def _add_group(self, group_id: str, progress: GroupProgress) -> Steps[None]:
        found_ms: list[int | None] = []
        yield None
        for name in dict.fromkeys(topic for topic, _ in progress.committed):
            topic = self._view.metadata.topics.get(name)
            if topic is not None:
                found_ms.append((yield from self._add_group_topic(group_id, progress, topic)))
        labels = Labels((("consumergroup", group_id),))
        self._groups.add(labels, len(progress.members), _seconds(longest(found_ms)))

    def _add_group_topic(
        self, group_id: str, progress: GroupProgress, topic: TopicMetadata
    ) -> Steps[int | None]:
        """Add a group's rows for one topic, and return the group's largest lag in milliseconds."""
        name = topic.name
        of_both = Labels((("consumergroup", group_id), ("topic", name)))
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
                labels = of_both.with_number("partition", known.partition)
                self._group_partitions.add(labels, committed, lag, _seconds(lag_ms))
        self._group_topics.add(of_both, committed_sum, total_records(lags))
        return longest(lags_ms)


def _seconds(value_ms: int | None) -> float | None:
    return None if value_ms is None else value_ms / 1000
