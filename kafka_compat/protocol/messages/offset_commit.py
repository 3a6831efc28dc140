"""OffsetCommit (API key 8)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
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
class OffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field("6+", default=-1)
    commit_timestamp: Int64 = field("1", default=-1)
    committed_metadata: NullableString = ""


@struct
class OffsetCommitRequestTopic:
    name: String = ""
    partitions: list[OffsetCommitRequestPartition] = []


@request(ApiKey.OFFSET_COMMIT, versions="0-9", flexible="8+")
class OffsetCommitRequest:
    group_id: String = ""
    generation_id_or_member_epoch: Int32 = field("1+", default=-1)
    member_id: String = field("1+", default="")
    group_instance_id: NullableString = field("7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = []


@struct
class OffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetCommitResponseTopic:
    name: String = field("0-9", default="")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition] = []


@response(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetCommitResponseTopic] = []
