"""UpdateRaftVoter (API key 82): a voter reports its addresses and supported versions (KIP-853)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.add_raft_voter import Listener
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class KRaftVersionFeature:
    """The range of kraft.version levels that a voter supports."""

    min_supported_version: s.Int16 = 0
    max_supported_version: s.Int16 = 0


@s.request(ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterRequest:
    cluster_id: s.NullableString = ""
    current_leader_epoch: s.Int32 = 0
    voter_id: s.Int32 = 0
    voter_directory_id: s.Uuid = ZERO_UUID
    listeners: list[Listener] = []
    kraft_version_feature: KRaftVersionFeature = s.field("0+", default_factory=KRaftVersionFeature)


@s.struct
class CurrentLeader:
    """The leader that the responding node knows. Kafka's voters repeat the request until it is named."""

    leader_id: s.Int32 = -1
    leader_epoch: s.Int32 = -1
    host: s.String = ""
    port: s.Int32 = 0


@s.response(ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    current_leader: CurrentLeader = s.field("0+", default_factory=CurrentLeader, tag=0)
