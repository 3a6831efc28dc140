"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class DescribeShareGroupOffsetsRequestGroup:
    """One group. Null `topics` requests all topics."""

    group_id: s.String = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []


@s.request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


@s.struct
class DescribeShareGroupOffsetsResponsePartition:
    """`lag` is the number of records still to be delivered (KIP-1226), or -1 if it is unknown."""

    partition_index: s.Int32 = 0
    start_offset: s.Int64 = 0
    leader_epoch: s.Int32 = 0
    lag: s.Int64 = s.field("1+", default=-1)
    error_code: s.Int16 = 0
    error_message: s.NullableString = None


@s.struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: s.String = ""
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []


@s.struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: s.String = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: s.Int16 = 0
    error_message: s.NullableString = None


@s.response(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: s.Int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
