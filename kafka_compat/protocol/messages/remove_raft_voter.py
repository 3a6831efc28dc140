"""RemoveRaftVoter (API key 81): remove a voter from the metadata quorum (KIP-853)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.request(ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    cluster_id: s.NullableString = ""
    voter_id: s.Int32 = 0
    voter_directory_id: s.Uuid = ZERO_UUID


@s.response(ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
