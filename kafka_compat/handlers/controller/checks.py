"""Checks and parts of responses that the APIs of the metadata quorum share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.coordination.raft.effects import AnswerEpoch
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.messages.begin_quorum_epoch import ResponsePartitionData, ResponseTopicData
from kafka_compat.protocol.messages.vote import NodeEndpoint
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC
from kafka_compat.quorum.node import QuorumNode
from kafka_compat.quorum.requests import Endpoints, error_code

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


def node_of(ctx: ListenerContext) -> QuorumNode:
    """Return the quorum node of this process. Only processes with a node serve these APIs."""
    node = ctx.services.quorum
    if node is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return node


def require_same_cluster(node: QuorumNode, cluster_id: str | None) -> None:
    """Raise KafkaError if a request states the ID of another cluster."""
    if cluster_id is not None and cluster_id != node.local.cluster_id:
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)


def metadata_partition(topics: Sequence[Any]) -> Any:
    """Return the request's only partition. Raises KafkaError if it is not that of the metadata."""
    if len(topics) != 1 or topics[0].topic_name != TOPIC or len(topics[0].partitions) != 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    partition = topics[0].partitions[0]
    if partition.partition_index != PARTITION:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return partition


def endpoints_of(listeners: Sequence[Any]) -> Endpoints:
    """Return the addresses of a node in a request, by listener name."""
    return {each.name: (each.host, each.port) for each in listeners}


def epoch_result(answer: AnswerEpoch) -> list[ResponseTopicData]:
    """Return the part of a response that BeginQuorumEpoch and EndQuorumEpoch share."""
    partition = ResponsePartitionData(
        partition_index=PARTITION,
        error_code=error_code(answer.error),
        leader_id=answer.leader_id,
        leader_epoch=answer.epoch,
    )
    return [ResponseTopicData(topic_name=TOPIC, partitions=[partition])]


def leader_address(node: QuorumNode, leader_id: int) -> tuple[str, int] | None:
    """Return the leader's address, or None if the leader or its address is unknown."""
    return None if leader_id < 0 else node.peers.address_of(leader_id)


def leader_endpoints(node: QuorumNode, leader_id: int) -> list[NodeEndpoint]:
    """Return the leader's address, if it is known, for a response that names the leader."""
    address = leader_address(node, leader_id)
    return [] if address is None else [NodeEndpoint(node_id=leader_id, host=address[0], port=address[1])]
