"""EndQuorumEpoch (API key 54): a leader of the metadata quorum resigns (KIP-595)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.begin_quorum_epoch import LeaderEndpoint, ResponseTopicData
from kafka_compat.protocol.messages.vote import NodeEndpoint
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class ReplicaInfo:
    candidate_id: s.Int32 = s.field("1+", default=0)
    candidate_directory_id: s.Uuid = s.field("1+", default=ZERO_UUID)


@s.struct
class PartitionData:
    """The leader that resigns, its epoch, and the voters that it recommends as successors, best first."""

    partition_index: s.Int32 = 0
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    preferred_successors: list[s.Int32] = s.field("0", default=[])
    preferred_candidates: list[ReplicaInfo] = s.field("1+", default=[])


@s.struct
class TopicData:
    topic_name: s.String = ""
    partitions: list[PartitionData] = []


@s.request(ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+")
class EndQuorumEpochRequest:
    """Version 1 identifies successors by ID and directory, and adds the leader's addresses (KIP-853)."""

    cluster_id: s.NullableString = None
    topics: list[TopicData] = []
    leader_endpoints: list[LeaderEndpoint] = s.field("1+", default=[])


@s.response(ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    """`error_code` applies to the whole request, for example INCONSISTENT_CLUSTER_ID."""

    error_code: s.Int16 = 0
    topics: list[ResponseTopicData] = []
    node_endpoints: list[NodeEndpoint] = s.field("1+", default=[], tag=0)
