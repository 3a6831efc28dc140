"""Apply UpdateMetadata requests, from any controller, to the metadata cache."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from kafka_compat.coordination.controller.outcomes import LEADER_DURING_DELETE
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

_UNKNOWN = -1


class TopicUpdate(NamedTuple):
    """New states of one topic's partitions."""

    name: str
    topic_id: UUID
    partitions: Sequence[PartitionMetadata]


class MetadataUpdate(NamedTuple):
    """An update from a controller, with all live brokers and the changed topics."""

    controller_id: int
    brokers: Iterable[BrokerMetadata]
    topics: Iterable[TopicUpdate]


def apply_update(cache: MetadataCache, update: MetadataUpdate) -> None:
    """Apply an update, and publish it as one delta."""
    change = cache.change()
    change.set_controller(update.controller_id)
    brokers = {broker.broker_id: broker for broker in update.brokers if broker.endpoints}
    change.set_brokers(dict(sorted(brokers.items())))
    for topic in update.topics:
        if any(partition.leader == LEADER_DURING_DELETE for partition in topic.partitions):
            known = cache.topics.get(topic.name)
            if known is not None and topic.topic_id.int in (0, known.topic_id.int):
                change.remove_topic(topic.name)
        else:
            change.put_topic(_described(cache, topic))
    change.publish()


def _described(cache: MetadataCache, topic: TopicUpdate) -> TopicMetadata:
    known = cache.topics.get(topic.name)
    partitions: dict[int, PartitionMetadata] = {}
    if known is not None and known.topic_id == topic.topic_id:
        partitions = {item.partition: item for item in known.partitions}
    partitions.update((item.partition, item) for item in topic.partitions)
    # Add missing partitions, without a leader: the cache requires all partition numbers from 0.
    complete = tuple(
        partitions.get(index) or PartitionMetadata(index, _UNKNOWN, _UNKNOWN, (), ())
        for index in range(max(partitions) + 1)
    )
    return TopicMetadata(topic.name, topic.topic_id, complete)


def update_of(request: UpdateMetadataRequest) -> MetadataUpdate:
    """Convert an UpdateMetadata request of any version."""
    brokers = (
        BrokerMetadata(
            broker.id, {end.listener: (end.host, end.port) for end in broker.endpoints}, broker.rack
        )
        for broker in request.live_brokers
    )
    topics = (
        TopicUpdate(topic.topic_name, topic.topic_id, [_partition(state) for state in topic.partition_states])
        for topic in _grouped(request)
    )
    return MetadataUpdate(request.controller_id, brokers, topics)


def _grouped(request: UpdateMetadataRequest) -> Iterable[UpdateMetadataTopicState]:
    if not request.ungrouped_partition_states:
        return request.topic_states
    from kafka_compat.protocol.messages.update_metadata import UpdateMetadataTopicState

    topics: dict[str, UpdateMetadataTopicState] = {}
    for state in request.ungrouped_partition_states:
        topics.setdefault(
            state.topic_name, UpdateMetadataTopicState(topic_name=state.topic_name, partition_states=[])
        ).partition_states.append(state)
    return topics.values()


def _partition(state: UpdateMetadataPartitionState) -> PartitionMetadata:
    return PartitionMetadata(
        state.partition_index,
        state.leader,
        state.leader_epoch,
        tuple(state.replicas),
        tuple(state.isr),
        state.zk_version,
        tuple(state.offline_replicas),
    )
