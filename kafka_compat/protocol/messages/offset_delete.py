"""OffsetDelete (API key 47): forget offsets of a group for topics that it does not read (KIP-496)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, String, request, response, struct


@struct
class OffsetDeleteRequestPartition:
    """One partition."""

    partition_index: Int32 = 0


@struct
class OffsetDeleteRequestTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = []


@request(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteRequest:
    """Topics that the group is subscribed to are refused with GROUP_SUBSCRIBED_TO_TOPIC."""

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = []


@struct
class OffsetDeleteResponsePartition:
    """What became of one partition."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetDeleteResponseTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = []


@response(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteResponse:
    """`error_code` concerns the whole request."""

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
