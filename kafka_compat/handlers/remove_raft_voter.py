"""RemoveRaftVoter (API key 81): remove a voter from the metadata quorum (KIP-853). A broker passes the
request on to the leader.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.describe_quorum import response_of_leader
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kafka_compat.security.authorizer import Operation


@handler(0, 0, quorum=True)
async def remove_raft_voter(ctx: RequestContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    require_cluster(ctx, Operation.ALTER)
    response: RemoveRaftVoterResponse = await response_of_leader(ctx, ApiKey.REMOVE_RAFT_VOTER, request)
    return response
