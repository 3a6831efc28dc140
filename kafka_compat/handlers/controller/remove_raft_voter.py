"""RemoveRaftVoter (API key 81): remove a voter from the metadata quorum (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerVoterChange
from kafka_compat.coordination.raft.events import VoterChange, VoterChangeRequested
from kafka_compat.coordination.raft.values import ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import node_of, require_same_cluster
from kafka_compat.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from kafka_compat.quorum.requests import error_code
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_TIMEOUT_MS: Final = 30_000
"""The request contains no timeout."""


@handler(0, 0)
def remove_raft_voter(ctx: ListenerContext, request: RemoveRaftVoterRequest) -> Deferred:
    require_cluster(ctx, Operation.ALTER)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)

    def asked(request_id: int) -> VoterChangeRequested:
        voter = ReplicaKey(request.voter_id, request.voter_directory_id)
        return VoterChangeRequested(request_id, VoterChange.REMOVE, voter, {}, _TIMEOUT_MS)

    def response(answer: AnswerVoterChange) -> RemoveRaftVoterResponse:
        return RemoveRaftVoterResponse(error_code=error_code(answer.error), error_message=answer.message)

    return node.ask(asked, response)
