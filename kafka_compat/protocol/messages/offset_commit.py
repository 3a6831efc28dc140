"""OffsetCommit (API key 8): store offsets of a group."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class OffsetCommitRequestPartition:
    """The offset of the next record to read, the leader epoch of the last one read, and text of the
    client.
    """

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field("6+", default=-1)
    commit_timestamp: Int64 = field("1", default=-1)
    committed_metadata: NullableString = ""


@struct
class OffsetCommitRequestTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[OffsetCommitRequestPartition] = []


@request(ApiKey.OFFSET_COMMIT, versions="0-9", flexible="8+")
class OffsetCommitRequest:
    """Generation -1 with an empty member id commits from outside of the group. retention_time_ms is of
    versions 2 to 4, -1 the default; version 6 adds the leader epoch, version 7 static members, version 9
    members of the new consumer protocol, by their epoch.
    """

    group_id: String = ""
    generation_id_or_member_epoch: Int32 = field("1+", default=-1)
    member_id: String = field("1+", default="")
    group_instance_id: NullableString = field("7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = []


@struct
class OffsetCommitResponsePartition:
    """Whether the offset of one partition is stored."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetCommitResponseTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[OffsetCommitResponsePartition] = []


@response(ApiKey.OFFSET_COMMIT, versions="0-9", flexible="8+")
class OffsetCommitResponse:
    """Topics are answered one by one."""

    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetCommitResponseTopic] = []
