"""AddRaftVoter (API key 80): add a voter to the metadata quorum (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerVoterChange
from kafka_compat.coordination.raft.events import VoterChange, VoterChangeRequested
from kafka_compat.coordination.raft.values import ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import endpoints_of, node_of, require_same_cluster
from kafka_compat.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kafka_compat.quorum.requests import error_code
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


@handler(0, 1)
def add_raft_voter(ctx: ListenerContext, request: AddRaftVoterRequest) -> Deferred:
    require_cluster(ctx, Operation.ALTER)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)

    def asked(request_id: int) -> VoterChangeRequested:
        return VoterChangeRequested(
            request_id,
            VoterChange.ADD,
            ReplicaKey(request.voter_id, request.voter_directory_id),
            endpoints_of(request.listeners),
            request.timeout_ms,
        )

    def response(answer: AnswerVoterChange) -> AddRaftVoterResponse:
        return AddRaftVoterResponse(error_code=error_code(answer.error), error_message=answer.message)

    return node.ask(asked, response)
