"""Topics in memory, for consumer groups without a broker."""

from __future__ import annotations

from uuid import NAMESPACE_DNS, UUID, uuid5

from kafka_compat.groups.consumer.assignors.range import RangeAssignor
from kafka_compat.groups.consumer.assignors.uniform import UniformAssignor
from kafka_compat.groups.consumer.cluster_topics import ClusterTopics, ServerAssignors
from kafka_compat.groups.consumer.consumer_group import ConsumerGroups, ConsumerGroupSettings
from kafka_compat.metadata.cache import MetadataCache, PartitionMetadata, TopicMetadata


def topic_id(name: str) -> UUID:
    return uuid5(NAMESPACE_DNS, name)


def topic(name: str, partitions: int) -> TopicMetadata:
    """Return a topic with an ID that depends only on its name."""
    return TopicMetadata(
        name, topic_id(name), tuple(PartitionMetadata(each, 1, 0, (1,), (1,)) for each in range(partitions))
    )


def consumer_groups(
    *topics: TopicMetadata,
    settings: ConsumerGroupSettings = ConsumerGroupSettings(),  # noqa: B008
    max_size: int = 1_000,
) -> ConsumerGroups:
    """Return what consumer groups have in common, for a cluster with these topics."""
    metadata = MetadataCache("cluster", 1)
    for each in topics:
        metadata.put_topic(each)
    return groups_of(metadata, settings, max_size)


def groups_of(metadata: MetadataCache, settings: ConsumerGroupSettings, max_size: int) -> ConsumerGroups:
    cluster = ClusterTopics(metadata)
    assignors = ServerAssignors((UniformAssignor(), RangeAssignor()), cluster)
    return ConsumerGroups(cluster, assignors.assign, lambda _: settings, assignors.names, max_size)
