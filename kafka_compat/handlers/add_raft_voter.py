"""AddRaftVoter (API key 80): add a voter to the metadata quorum (KIP-853). A broker passes the request on to
the leader.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.describe_quorum import response_of_leader
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kafka_compat.security.authorizer import Operation


@handler(0, 1, quorum=True)
async def add_raft_voter(ctx: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    require_cluster(ctx, Operation.ALTER)
    response: AddRaftVoterResponse = await response_of_leader(ctx, ApiKey.ADD_RAFT_VOTER, request)
    return response
