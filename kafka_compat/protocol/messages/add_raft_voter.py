"""AddRaftVoter (API key 80): add a voter to the metadata quorum (KIP-853)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class Listener:
    """An address of a voter, by the name of its controller listener."""

    name: s.String = ""
    host: s.String = ""
    port: s.UInt16 = 0


@s.request(ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    """With `ack_when_committed` (version 1), the response waits until the change is committed."""

    cluster_id: s.NullableString = ""
    timeout_ms: s.Int32 = 0
    voter_id: s.Int32 = 0
    voter_directory_id: s.Uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: s.Bool = s.field("1+", default=True)


@s.response(ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
