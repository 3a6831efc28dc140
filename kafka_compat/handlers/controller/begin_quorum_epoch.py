"""BeginQuorumEpoch (API key 53): a new leader announces itself to this voter (KIP-595)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerEpoch
from kafka_compat.coordination.raft.events import BeginQuorumEpochRequested
from kafka_compat.coordination.raft.values import ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import (
    endpoints_of,
    epoch_result,
    leader_endpoints,
    metadata_partition,
    node_of,
    require_same_cluster,
)
from kafka_compat.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


@handler(0, 1)
def begin_quorum_epoch(ctx: ListenerContext, request: BeginQuorumEpochRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)
    partition = metadata_partition(request.topics)
    voter_id = request.voter_id if request.voter_id >= 0 else node.node_id
    node.peers.learn_endpoints(partition.leader_id, endpoints_of(request.leader_endpoints))

    def asked(request_id: int) -> BeginQuorumEpochRequested:
        voter = ReplicaKey(voter_id, partition.voter_directory_id)
        return BeginQuorumEpochRequested(request_id, partition.leader_epoch, partition.leader_id, voter)

    def response(answer: AnswerEpoch) -> BeginQuorumEpochResponse:
        return BeginQuorumEpochResponse(
            topics=epoch_result(answer), node_endpoints=leader_endpoints(node, answer.leader_id)
        )

    return node.ask(asked, response)
