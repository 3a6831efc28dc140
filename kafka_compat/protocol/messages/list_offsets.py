"""ListOffsets (API key 2): offsets of partitions by timestamp."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response


@s.struct
class ListOffsetsPartition:
    """`timestamp` (in ms since the epoch) requests the first offset at or after this time. Special values are
    -1 (the end), -2 (the start), -3 (the record with the highest timestamp, version 7), -4 (the start on
    local disks, version 8), -5 (the last tiered offset, version 9) and -6 (the first offset that is not
    tiered yet, version 11).
    """

    partition_index: s.Int32 = 0
    current_leader_epoch: s.Int32 = s.field("4+", default=-1)
    timestamp: s.Int64 = 0
    max_num_offsets: s.Int32 = s.field("0", default=1)


@s.struct
class ListOffsetsTopic:
    name: s.String = ""
    partitions: list[ListOffsetsPartition] = []


@request(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsRequest:
    """`replica_id` is -1 for a consumer. If isolation_level (version 2) is 1 (read_committed), the end is the
    last stable offset. Version 10 adds a timeout for tiered storage (KIP-1075).
    """

    replica_id: s.Int32 = 0
    isolation_level: s.Int8 = s.field("2+", default=0)
    topics: list[ListOffsetsTopic] = []
    timeout_ms: s.Int32 = s.field("10+", default=0)


@s.struct
class ListOffsetsPartitionResponse:
    """Contains a list of offsets in version 0. Later versions contain one offset and timestamp (-1: none)."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    old_style_offsets: list[s.Int64] = s.field("0", default=[])
    timestamp: s.Int64 = s.field("1+", default=-1)
    offset: s.Int64 = s.field("1+", default=-1)
    leader_epoch: s.Int32 = s.field("4+", default=-1)


@s.struct
class ListOffsetsTopicResponse:
    name: s.String = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@response(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: s.Int32 = s.field("2+", default=0)
    topics: list[ListOffsetsTopicResponse] = []
