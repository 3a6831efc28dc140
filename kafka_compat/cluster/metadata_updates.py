"""UpdateMetadata into the metadata cache."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_compat.coordination.controller.outcomes import LEADER_DURING_DELETE
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

_UNKNOWN = -1


def apply_update(cache: MetadataCache, request: UpdateMetadataRequest) -> None:
    """Take over what the controller reports, and publish it as one delta."""
    change = cache.change()
    change.set_controller(request.controller_id)
    brokers = {
        broker.id: BrokerMetadata(
            broker.id, {end.listener: (end.host, end.port) for end in broker.endpoints}, broker.rack
        )
        for broker in request.live_brokers
        if broker.endpoints
    }
    change.set_brokers(dict(sorted(brokers.items())))
    for topic in _grouped(request):
        if any(state.leader == LEADER_DURING_DELETE for state in topic.partition_states):
            known = cache.topics.get(topic.topic_name)
            if known is not None and topic.topic_id.int in (0, known.topic_id.int):
                change.remove_topic(topic.topic_name)
        else:
            change.put_topic(_described(cache, topic))
    change.publish()


def _grouped(request: UpdateMetadataRequest) -> Iterable[UpdateMetadataTopicState]:
    """Partitions by topic, also of the versions before 5, which name the topic with each."""
    if not request.ungrouped_partition_states:
        return request.topic_states
    topics: dict[str, UpdateMetadataTopicState] = {}
    for state in request.ungrouped_partition_states:
        topic = topics.setdefault(
            state.topic_name, UpdateMetadataTopicState(topic_name=state.topic_name, partition_states=[])
        )
        topic.partition_states.append(state)
    return topics.values()


def _described(cache: MetadataCache, topic: UpdateMetadataTopicState) -> TopicMetadata:
    known = cache.topics.get(topic.topic_name)
    partitions: dict[int, PartitionMetadata] = {}
    if known is not None and known.topic_id == topic.topic_id:
        partitions = {item.partition: item for item in known.partitions}
    for state in topic.partition_states:
        partitions[state.partition_index] = _partition(state)
    # The cache counts partitions from 0; one that was not reported yet has no leader that clients could use.
    complete = tuple(
        partitions.get(index) or PartitionMetadata(index, _UNKNOWN, _UNKNOWN, (), ())
        for index in range(max(partitions) + 1)
    )
    return TopicMetadata(topic.topic_name, topic.topic_id, complete)


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
