"""BeginQuorumEpoch (API key 53): a new leader of the metadata quorum announces itself (KIP-595)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.vote import NodeEndpoint
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    """The leader and its epoch, and the metadata directory of the voter that should follow."""

    partition_index: s.Int32 = 0
    voter_directory_id: s.Uuid = s.field("1+", default=ZERO_UUID)
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0


@s.struct
class TopicData:
    topic_name: s.String = ""
    partitions: list[PartitionData] = []


@s.struct
class LeaderEndpoint:
    """The address of one of the leader's controller listeners."""

    name: s.String = s.field("1+", default="")
    host: s.String = s.field("1+", default="")
    port: s.UInt16 = s.field("1+", default=0)


@s.request(ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+")
class BeginQuorumEpochRequest:
    """Version 1 adds directory IDs and the leader's addresses (KIP-853). `voter_id` is the recipient's ID."""

    cluster_id: s.NullableString = None
    voter_id: s.Int32 = s.field("1+", default=-1)
    topics: list[TopicData] = []
    leader_endpoints: list[LeaderEndpoint] = s.field("1+", default=[])


@s.struct
class ResponsePartitionData:
    """The epoch and leader that the recipient knows (-1: unknown)."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0


@s.struct
class ResponseTopicData:
    topic_name: s.String = ""
    partitions: list[ResponsePartitionData] = []


@s.response(ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    """`error_code` applies to the whole request, for example INCONSISTENT_CLUSTER_ID."""

    error_code: s.Int16 = 0
    topics: list[ResponseTopicData] = []
    node_endpoints: list[NodeEndpoint] = s.field("1+", default=[], tag=0)
