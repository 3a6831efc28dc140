"""Topics in memory, for consumer groups without a broker."""

from __future__ import annotations

from uuid import NAMESPACE_DNS, UUID, uuid5

from kafka_compat.config.group import ConsumerGroupConfig, ConsumerGroupLimits
from kafka_compat.groups.consumer.cluster_topics import ClusterTopics, ServerAssignors
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.metadata.cache import MetadataCache, PartitionMetadata, TopicMetadata


def topic_id(name: str) -> UUID:
    return uuid5(NAMESPACE_DNS, name)


def topic(name: str, partitions: int) -> TopicMetadata:
    """Return a topic with an ID that depends only on its name."""
    return TopicMetadata(
        name, topic_id(name), tuple(PartitionMetadata(each, 1, 0, (1,), (1,)) for each in range(partitions))
    )


def consumer_groups(
    *topics: TopicMetadata, assignment_interval_ms: int = 1_000, size_max: int = 1_000
) -> ConsumerGroups:
    """Return what consumer groups have in common, for a cluster with these topics."""
    metadata = MetadataCache("cluster", 1)
    for each in topics:
        metadata.put_topic(each)
    return groups_of(metadata, assignment_interval_ms, size_max)


def groups_of(
    metadata: MetadataCache, assignment_interval_ms: int, size_max: int, policy: str = "bidirectional"
) -> ConsumerGroups:
    cluster = ClusterTopics(metadata)
    settings = ConsumerGroupConfig(45_000, 5_000, assignment_interval_ms)
    may_upgrade, may_downgrade = (policy in (one, "bidirectional") for one in ("upgrade", "downgrade"))
    limits = ConsumerGroupLimits(size_max, ("uniform", "range"), may_upgrade, may_downgrade, 600_000)
    return ConsumerGroups(cluster, ServerAssignors(cluster).assign, lambda _: settings, limits)
