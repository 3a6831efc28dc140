"""ListOffsets (API key 2)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int8, Int16, Int32, Int64, String, field, request, response, struct


@struct
class ListOffsetsPartition:
    partition_index: Int32 = 0
    current_leader_epoch: Int32 = field("4+", default=-1)
    timestamp: Int64 = 0
    max_num_offsets: Int32 = field("0", default=1)


@struct
class ListOffsetsTopic:
    name: String = ""
    partitions: list[ListOffsetsPartition] = []


@request(ApiKey.LIST_OFFSETS, versions="0-10", flexible="6+")
class ListOffsetsRequest:
    replica_id: Int32 = 0
    isolation_level: Int8 = field("2+", default=0)
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Int32 = field("10+", default=0)


@struct
class ListOffsetsPartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    old_style_offsets: list[Int64] = field("0", default=[])
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: String = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@response(ApiKey.LIST_OFFSETS, versions="0-10", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[ListOffsetsTopicResponse] = []
