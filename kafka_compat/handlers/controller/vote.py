"""Vote (API key 52): a candidate requests this node's vote, or its pre-vote (KIP-595, KIP-996)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerVote
from kafka_compat.coordination.raft.events import VoteRequested
from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import (
    leader_endpoints,
    metadata_partition,
    node_of,
    require_same_cluster,
)
from kafka_compat.protocol.messages.vote import (
    ResponsePartitionData,
    ResponseTopicData,
    VoteRequest,
    VoteResponse,
)
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC
from kafka_compat.quorum.requests import error_code
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


@handler(0, 2)
def vote(ctx: ListenerContext, request: VoteRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)
    partition = metadata_partition(request.topics)
    voter_id = request.voter_id if request.voter_id >= 0 else node.node_id

    def asked(request_id: int) -> VoteRequested:
        return VoteRequested(
            request_id,
            partition.replica_epoch,
            ReplicaKey(partition.replica_id, partition.replica_directory_id),
            ReplicaKey(voter_id, partition.voter_directory_id),
            OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch),
            partition.pre_vote,
        )

    def response(answer: AnswerVote) -> VoteResponse:
        result = ResponsePartitionData(
            partition_index=PARTITION,
            error_code=error_code(answer.error),
            leader_id=answer.leader_id,
            leader_epoch=answer.epoch,
            vote_granted=answer.granted,
        )
        return VoteResponse(
            topics=[ResponseTopicData(topic_name=TOPIC, partitions=[result])],
            node_endpoints=leader_endpoints(node, answer.leader_id),
        )

    return node.ask(asked, response)
