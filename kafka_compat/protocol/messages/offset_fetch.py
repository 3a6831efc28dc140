"""OffsetFetch (API key 9)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class OffsetFetchRequestTopic:
    name: String = field("0-7", default="")
    partition_indexes: list[Int32] = field("0-7", default=[])


@struct
class OffsetFetchRequestTopics:
    name: String = field("8+", default="")
    partition_indexes: list[Int32] = field("8+", default=[])


@struct
class OffsetFetchRequestGroup:
    group_id: String = field("8+", default="")
    member_id: NullableString = field("9+", default=None)
    member_epoch: Int32 = field("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field("8+", default=[])


@request(ApiKey.OFFSET_FETCH, versions="0-9", flexible="6+")
class OffsetFetchRequest:
    group_id: String = field("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", default=[], nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field("8+", default=[])
    require_stable: Bool = field("7+", default=False)


@struct
class OffsetFetchResponsePartition:
    partition_index: Int32 = field("0-7", default=0)
    committed_offset: Int64 = field("0-7", default=0)
    committed_leader_epoch: Int32 = field("5-7", default=-1)
    metadata: NullableString = field("0-7", default="")
    error_code: Int16 = field("0-7", default=0)


@struct
class OffsetFetchResponseTopic:
    name: String = field("0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = field("0-7", default=[])


@struct
class OffsetFetchResponsePartitions:
    partition_index: Int32 = field("8+", default=0)
    committed_offset: Int64 = field("8+", default=0)
    committed_leader_epoch: Int32 = field("8+", default=-1)
    metadata: NullableString = field("8+", default="")
    error_code: Int16 = field("8+", default=0)


@struct
class OffsetFetchResponseTopics:
    name: String = field("8-9", default="")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions] = field("8+", default=[])


@struct
class OffsetFetchResponseGroup:
    group_id: String = field("8+", default="")
    topics: list[OffsetFetchResponseTopics] = field("8+", default=[])
    error_code: Int16 = field("8+", default=0)


@response(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = field("0-7", default=[])
    error_code: Int16 = field("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = field("8+", default=[])
