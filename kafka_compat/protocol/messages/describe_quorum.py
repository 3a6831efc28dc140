"""DescribeQuorum (API key 55): describe the voters and observers of the metadata quorum (KIP-595)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    partition_index: s.Int32 = 0


@s.struct
class TopicData:
    topic_name: s.String = ""
    partitions: list[PartitionData] = []


@s.request(ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """Version 1 adds timestamps to the response, and version 2 directory IDs, messages and addresses."""

    topics: list[TopicData] = []


@s.struct
class ReplicaState:
    """A replica as the leader sees it. Timestamps are in ms since 1970, or -1 if they are unknown."""

    replica_id: s.Int32 = 0
    replica_directory_id: s.Uuid = s.field("2+", default=ZERO_UUID)
    log_end_offset: s.Int64 = 0
    last_fetch_timestamp: s.Int64 = s.field("1+", default=-1)
    last_caught_up_timestamp: s.Int64 = s.field("1+", default=-1)


@s.struct
class ResponsePartitionData:
    """The state of the quorum. `leader_id` is -1 while the leader is unknown."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = s.field("2+", default="")
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    high_watermark: s.Int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


@s.struct
class ResponseTopicData:
    topic_name: s.String = ""
    partitions: list[ResponsePartitionData] = []


@s.struct
class Listener:
    """An address of a node, by the name of its controller listener."""

    name: s.String = s.field("2+", default="")
    host: s.String = s.field("2+", default="")
    port: s.UInt16 = s.field("2+", default=0)


@s.struct
class Node:
    """A voter and its addresses."""

    node_id: s.Int32 = s.field("2+", default=0)
    listeners: list[Listener] = s.field("2+", default=[])


@s.response(ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: s.Int16 = 0
    error_message: s.NullableString = s.field("2+", default="")
    topics: list[ResponseTopicData] = []
    nodes: list[Node] = s.field("2+", default=[])
