"""The families of /metrics: those of kafka_exporter (github.com/danielqsj/kafka_exporter), with its names,
labels and helps, and a few of our own beside them.
"""

from __future__ import annotations

from kafka_compat.metrics.text import Family


class Families:
    """Those of one scrape."""

    def __init__(self, *, by_partition: bool) -> None:
        """`by_partition=False`: without those that have a sample for each partition."""
        self._all: list[Family] = []
        each, new = by_partition, self._new
        self.brokers = new("kafka_brokers", "Number of Brokers in the Kafka Cluster.")
        self.broker_info = new("kafka_broker_info", "Information about the Kafka Broker.")

        self.partitions = new("kafka_topic_partitions", "Number of partitions for this Topic")
        self.current_offset = new(
            "kafka_topic_partition_current_offset", "Current Offset of a Broker at Topic/Partition", each
        )
        self.oldest_offset = new(
            "kafka_topic_partition_oldest_offset", "Oldest Offset of a Broker at Topic/Partition", each
        )
        self.in_sync_replica = new(
            "kafka_topic_partition_in_sync_replica",
            "Number of In-Sync Replicas for this Topic/Partition",
            each,
        )
        self.leader = new("kafka_topic_partition_leader", "Leader Broker ID of this Topic/Partition", each)
        self.leader_is_preferred = new(
            "kafka_topic_partition_leader_is_preferred",
            "1 if Topic/Partition is using the Preferred Broker",
            each,
        )
        self.replicas = new(
            "kafka_topic_partition_replicas", "Number of Replicas for this Topic/Partition", each
        )
        self.under_replicated = new(
            "kafka_topic_partition_under_replicated_partition",
            "1 if Topic/Partition is under Replicated",
            each,
        )
        self.current_offset_sum = new(
            "kafka_topic_current_offset_sum", "Current Offsets of all partitions of this Topic"
        )
        self.oldest_offset_sum = new(
            "kafka_topic_oldest_offset_sum", "Oldest Offsets of all partitions of this Topic"
        )
        self.under_replicated_count = new(
            "kafka_topic_under_replicated_partitions", "Number of partitions that lack In-Sync Replicas"
        )
        self.leaderless_count = new(
            "kafka_topic_leaderless_partitions", "Number of partitions without a leader"
        )

        self.members = new("kafka_consumergroup_members", "Amount of members in a consumer group")
        self.committed = new(
            "kafka_consumergroup_current_offset",
            "Current Offset of a ConsumerGroup at Topic/Partition",
            each,
        )
        self.committed_sum = new(
            "kafka_consumergroup_current_offset_sum",
            "Current Offset of a ConsumerGroup at Topic for all partitions",
        )
        self.lag = new(
            "kafka_consumergroup_lag",
            "Current Approximate Lag of a ConsumerGroup at Topic/Partition",
            each,
        )
        self.lag_sum = new(
            "kafka_consumergroup_lag_sum",
            "Current Approximate Lag of a ConsumerGroup at Topic for all partitions",
        )
        self.lag_seconds = new(
            "kafka_consumergroup_lag_seconds",
            "Age of the first record that a ConsumerGroup has not committed at Topic/Partition",
            each,
        )
        self.lag_seconds_max = new(
            "kafka_consumergroup_lag_seconds_max",
            "Age of the oldest record that a ConsumerGroup has not committed",
        )

    def _new(self, name: str, help_text: str, written: bool = True) -> Family:
        family = Family(name, help_text, written=written)
        self._all.append(family)
        return family

    def pieces(self) -> list[bytes]:
        """All of them as text."""
        return [piece for family in self._all for piece in family.pieces()]
