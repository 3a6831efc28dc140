"""Vote (API key 52): a candidate of the metadata quorum requests votes (KIP-595, pre-vote: KIP-996)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    """The candidate's ID, epoch and metadata directory, and the end of its log. `voter_directory_id` is the
    directory of the node that should vote. With `pre_vote`, the epoch is the candidate's current one.
    """

    partition_index: s.Int32 = 0
    replica_epoch: s.Int32 = 0
    replica_id: s.Int32 = 0
    replica_directory_id: s.Uuid = s.field("1+", default=ZERO_UUID)
    voter_directory_id: s.Uuid = s.field("1+", default=ZERO_UUID)
    last_offset_epoch: s.Int32 = 0
    last_offset: s.Int64 = 0
    pre_vote: s.Bool = s.field("2+", default=False)


@s.struct
class TopicData:
    topic_name: s.String = ""
    partitions: list[PartitionData] = []


@s.request(ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteRequest:
    """Version 1 adds directory IDs (KIP-853), and version 2 pre-votes. `voter_id` is the recipient's ID."""

    cluster_id: s.NullableString = None
    voter_id: s.Int32 = s.field("1+", default=-1)
    topics: list[TopicData] = []


@s.struct
class ResponsePartitionData:
    """The vote, and the epoch and leader that the voter knows (-1: unknown)."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    vote_granted: s.Bool = False


@s.struct
class ResponseTopicData:
    topic_name: s.String = ""
    partitions: list[ResponsePartitionData] = []


@s.struct
class NodeEndpoint:
    """The address of a leader that the response names."""

    node_id: s.Int32 = s.field("1+", default=0)
    host: s.String = s.field("1+", default="")
    port: s.UInt16 = s.field("1+", default=0)


@s.response(ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteResponse:
    """`error_code` applies to the whole request, for example INCONSISTENT_CLUSTER_ID."""

    error_code: s.Int16 = 0
    topics: list[ResponseTopicData] = []
    node_endpoints: list[NodeEndpoint] = s.field("1+", default=[], tag=0)
