"""The metrics of kafka_exporter."""

from __future__ import annotations

from tests.metrics.scraping import Samples, samples_of

FAMILIES = {
    "kafka_brokers",
    "kafka_broker_info",
    "kafka_topic_partitions",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_current_offset_sum",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_sum",
    "kafka_consumergroup_members",
}
"""All metric families of kafka_exporter, except those of its own process and of groups in ZooKeeper."""


def of_kafka(text: str) -> Samples:
    return {
        key: value
        for key, value in samples_of(text).items()
        if key[0].startswith("kafka_") and key[0] != "kafka_exporter_build_info"
    }
