"""UpdateRaftVoter (API key 82): a voter reports its addresses (KIP-853). Kafka's voters repeat the request
until the response names the leader, also if the voters are static.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerVoterChange
from kafka_compat.coordination.raft.events import VoterChange, VoterChangeRequested
from kafka_compat.coordination.raft.values import ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import (
    endpoints_of,
    leader_address,
    node_of,
    require_same_cluster,
)
from kafka_compat.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kafka_compat.quorum.requests import error_code
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_TIMEOUT_MS: Final = 5_000


@handler(0, 0)
def update_raft_voter(ctx: ListenerContext, request: UpdateRaftVoterRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)

    def asked(request_id: int) -> VoterChangeRequested:
        return VoterChangeRequested(
            request_id,
            VoterChange.UPDATE,
            ReplicaKey(request.voter_id, request.voter_directory_id),
            endpoints_of(request.listeners),
            _TIMEOUT_MS,
            request.current_leader_epoch,
        )

    def response(answer: AnswerVoterChange) -> UpdateRaftVoterResponse:
        leader = CurrentLeader(leader_id=answer.leader_id, leader_epoch=answer.epoch)
        address = leader_address(node, answer.leader_id)
        if address is not None:
            leader.host, leader.port = address
        return UpdateRaftVoterResponse(error_code=error_code(answer.error), current_leader=leader)

    return node.ask(asked, response)
