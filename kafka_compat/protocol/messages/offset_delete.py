"""OffsetDelete (API key 47)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, String, request, response, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: Int32 = 0


@struct
class OffsetDeleteRequestTopic:
    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = []


@request(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteRequest:
    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = []


@struct
class OffsetDeleteResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetDeleteResponseTopic:
    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = []


@response(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteResponse:
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
