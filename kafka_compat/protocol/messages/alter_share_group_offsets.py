"""AlterShareGroupOffsets (API key 91): set the start offsets of a share group (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class AlterShareGroupOffsetsRequestPartition:
    partition_index: s.Int32 = 0
    start_offset: s.Int64 = 0


@s.struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: s.String = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []


@s.request(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """A group with members is rejected with NON_EMPTY_GROUP."""

    group_id: s.String = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


@s.struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None


@s.struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: s.String = ""
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []


@s.response(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
