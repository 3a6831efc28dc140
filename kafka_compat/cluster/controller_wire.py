"""Conversion between the controller's values and Kafka's request and response messages. No I/O.

The values contain the fields of all versions. The encoder omits those that a version does not have.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar
from uuid import UUID

from kafka_compat.coordination.controller.effects import (
    AlterPartitionReply,
    LeaderAndIsrPartition,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopReplicaPartition,
    UpdateMetadataPartition,
)
from kafka_compat.coordination.controller.events import IsrChange, LeaderAndIsrAnswered, StopReplicaAnswered
from kafka_compat.coordination.controller.outcomes import TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    TopicData,
)
from kafka_compat.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from kafka_compat.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from kafka_compat.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID

_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_OfPartition = TypeVar("_OfPartition", LeaderAndIsrPartition, UpdateMetadataPartition, StopReplicaPartition)
_Identified = TypeVar("_Identified", LeaderAndIsrPartition, UpdateMetadataPartition)
"""A partition with the ID of its topic."""
_TopicState = TypeVar("_TopicState")


def leader_and_isr(controller_id: int, effect: SendLeaderAndIsr, listener: str) -> LeaderAndIsrRequest:
    """Build a LeaderAndIsr request for one broker, with the leaders' inter-broker addresses."""
    live_leaders = []
    for broker in effect.live_leaders:
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            live_leaders.append(
                LeaderAndIsrLiveLeader(
                    broker_id=broker.broker_id, host_name=endpoint.host, port=endpoint.port
                )
            )
    return LeaderAndIsrRequest(
        controller_id=controller_id,
        controller_epoch=effect.controller_epoch,
        broker_epoch=effect.broker.epoch,
        topic_states=_topic_states(LeaderAndIsrTopicState, _leader_and_isr_state, effect.partitions),
        live_leaders=live_leaders,
    )


def _topic_states(
    topic_state: Callable[..., _TopicState],
    partition_state: Callable[[_Identified], object],
    partitions: Iterable[_Identified],
) -> list[_TopicState]:
    return [
        topic_state(
            topic_name=topic,
            topic_id=items[0].topic_id or ZERO_UUID,
            partition_states=[partition_state(item) for item in items],
        )
        for topic, items in _by_topic(partitions)
    ]


def _leader_and_isr_state(item: LeaderAndIsrPartition) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=item.partition.partition,
        controller_epoch=item.state.controller_epoch,
        leader=item.state.leader,
        leader_epoch=item.state.leader_epoch,
        isr=list(item.state.isr),
        partition_epoch=item.state.partition_epoch,
        replicas=list(item.assignment.replicas),
        adding_replicas=list(item.assignment.adding),
        removing_replicas=list(item.assignment.removing),
        is_new=item.is_new,
        leader_recovery_state=int(item.state.recovering),
    )


def update_metadata(
    controller_id: int, effect: SendUpdateMetadata, broker_epoch: int
) -> UpdateMetadataRequest:
    """Build an UpdateMetadata request for one broker."""
    return UpdateMetadataRequest(
        controller_id=controller_id,
        controller_epoch=effect.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=_topic_states(UpdateMetadataTopicState, _metadata_state, effect.partitions),
        live_brokers=[_live_broker(broker) for broker in effect.live_brokers],
    )


def _metadata_state(item: UpdateMetadataPartition) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=item.partition.partition,
        controller_epoch=item.state.controller_epoch,
        leader=item.state.leader,
        leader_epoch=item.state.leader_epoch,
        isr=list(item.state.isr),
        zk_version=item.state.partition_epoch,
        replicas=list(item.replicas),
        offline_replicas=list(item.offline_replicas),
    )


def _live_broker(broker: BrokerInfo) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=_SECURITY_PROTOCOLS.get(endpoint.security_protocol, 0),
            )
            for endpoint in broker.endpoints
        ],
        rack=broker.rack,
    )


def stop_replica(controller_id: int, effect: SendStopReplica) -> StopReplicaRequest:
    """Build a StopReplica request for one broker."""
    return StopReplicaRequest(
        controller_id=controller_id,
        controller_epoch=effect.controller_epoch,
        broker_epoch=effect.broker.epoch,
        topic_states=[
            StopReplicaTopicState(
                topic_name=topic,
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=item.partition.partition,
                        leader_epoch=item.leader_epoch,
                        delete_partition=item.delete,
                    )
                    for item in items
                ],
            )
            for topic, items in _by_topic(effect.partitions)
        ],
    )


def _by_topic(partitions: Iterable[_OfPartition]) -> Iterable[tuple[str, list[_OfPartition]]]:
    topics: dict[str, list[_OfPartition]] = {}
    for item in partitions:
        topics.setdefault(item.partition.topic, []).append(item)
    return topics.items()


def leader_and_isr_answered(effect: SendLeaderAndIsr, response: LeaderAndIsrResponse) -> LeaderAndIsrAnswered:
    """Convert the response to the LeaderAndIsr request for `effect` to an event."""
    names = {item.topic_id or ZERO_UUID: item.partition.topic for item in effect.partitions}
    errors = {
        TopicPartition(names[topic.topic_id], item.partition_index): item.error_code
        for topic in response.topics
        if topic.topic_id in names
        for item in topic.partition_errors
    }
    return LeaderAndIsrAnswered(effect.broker.broker_id, response.error_code, errors)


def stop_replica_answered(effect: SendStopReplica, response: StopReplicaResponse) -> StopReplicaAnswered:
    """Convert the response to the StopReplica request for `effect` to an event about deleted partitions."""
    deleted = {item.partition for item in effect.partitions if item.delete}
    errors = {}
    for item in response.partition_errors:
        partition = TopicPartition(item.topic_name, item.partition_index)
        if partition in deleted:
            errors[partition] = item.error_code
    return StopReplicaAnswered(effect.broker.broker_id, response.error_code, errors)


def isr_changes(
    request: AlterPartitionRequest, version: int, names: Mapping[UUID, str]
) -> dict[TopicPartition, IsrChange]:
    """Return the ISR changes in an AlterPartition request. Omit topics whose ID is missing from `names`."""
    changes: dict[TopicPartition, IsrChange] = {}
    for topic in request.topics:
        name = _topic_name(topic, version, names)
        for item in topic.partitions if name is not None else ():
            assert name is not None
            isr = [state.broker_id for state in item.new_isr_with_epochs] if version >= 3 else item.new_isr
            changes[TopicPartition(name, item.partition_index)] = IsrChange(
                item.leader_epoch, tuple(isr), item.partition_epoch, item.leader_recovery_state == 1
            )
    return changes


def alter_partition_response(
    request: AlterPartitionRequest, version: int, names: Mapping[UUID, str], reply: AlterPartitionReply
) -> AlterPartitionResponse:
    """Build the response to an AlterPartition request, with the partitions in the order of the request."""
    if reply.error:
        return AlterPartitionResponse(error_code=reply.error)
    topics = []
    for topic in request.topics:
        name = _topic_name(topic, version, names)
        partitions = []
        for item in topic.partitions:
            outcome: PartitionState | int
            if name is None:
                outcome = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                outcome = reply.partitions.get(
                    TopicPartition(name, item.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            partitions.append(_altered(item.partition_index, outcome))
        topics.append(
            AlterPartitionResponseTopicData(
                topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return AlterPartitionResponse(topics=topics)


def _altered(partition: int, outcome: PartitionState | int) -> AlterPartitionResponsePartitionData:
    if isinstance(outcome, int):
        return AlterPartitionResponsePartitionData(partition_index=partition, error_code=int(outcome))
    return AlterPartitionResponsePartitionData(
        partition_index=partition,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=list(outcome.isr),
        leader_recovery_state=int(outcome.recovering),
        partition_epoch=outcome.partition_epoch,
    )


def _topic_name(topic: TopicData, version: int, names: Mapping[UUID, str]) -> str | None:
    return names.get(topic.topic_id) if version >= 2 else topic.topic_name


def partitions_of(groups: Iterable[tuple[str, Iterable[int]]]) -> Iterator[TopicPartition]:
    """Yield a TopicPartition for each topic name and partition number."""
    return (TopicPartition(topic, index) for topic, indexes in groups for index in indexes)
