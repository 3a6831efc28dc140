"""EndQuorumEpoch (API key 54): a leader resigns and recommends successors (KIP-595)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerEpoch
from kafka_compat.coordination.raft.events import EndQuorumEpochRequested
from kafka_compat.coordination.raft.values import ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import (
    epoch_result,
    leader_endpoints,
    metadata_partition,
    node_of,
    require_same_cluster,
)
from kafka_compat.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_FIRST_VERSION_WITH_CANDIDATES = 1


@handler(0, 1)
def end_quorum_epoch(ctx: ListenerContext, request: EndQuorumEpochRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)
    partition = metadata_partition(request.topics)
    if ctx.api_version >= _FIRST_VERSION_WITH_CANDIDATES:
        successors = tuple(
            ReplicaKey(each.candidate_id, each.candidate_directory_id)
            for each in partition.preferred_candidates
        )
    else:
        successors = tuple(ReplicaKey(node_id) for node_id in partition.preferred_successors)

    def asked(request_id: int) -> EndQuorumEpochRequested:
        return EndQuorumEpochRequested(request_id, partition.leader_epoch, partition.leader_id, successors)

    def response(answer: AnswerEpoch) -> EndQuorumEpochResponse:
        return EndQuorumEpochResponse(
            topics=epoch_result(answer), node_endpoints=leader_endpoints(node, answer.leader_id)
        )

    return node.ask(asked, response)
