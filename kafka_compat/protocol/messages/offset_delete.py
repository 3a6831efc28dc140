"""OffsetDelete (API key 47): delete offsets of a group for topics to which no member subscribes (KIP-496)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class OffsetDeleteRequestPartition:
    partition_index: s.Int32 = 0


@s.struct
class OffsetDeleteRequestTopic:
    name: s.String = ""
    partitions: list[OffsetDeleteRequestPartition] = []


@s.request(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteRequest:
    """Topics to which the group subscribes are rejected with GROUP_SUBSCRIBED_TO_TOPIC."""

    group_id: s.String = ""
    topics: list[OffsetDeleteRequestTopic] = []


@s.struct
class OffsetDeleteResponsePartition:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.struct
class OffsetDeleteResponseTopic:
    name: s.String = ""
    partitions: list[OffsetDeleteResponsePartition] = []


@s.response(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteResponse:
    """`error_code` applies to the whole request."""

    error_code: s.Int16 = 0
    throttle_time_ms: s.Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
