"""OffsetCommit (API key 8): store the offsets of a group."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class OffsetCommitRequestPartition:
    """The offset of the next record to read, the leader epoch of the last record read, and client
    metadata.
    """

    partition_index: s.Int32 = 0
    committed_offset: s.Int64 = 0
    committed_leader_epoch: s.Int32 = s.field("6+", default=-1)
    commit_timestamp: s.Int64 = s.field("1", default=-1)
    committed_metadata: s.NullableString = ""


@s.struct
class OffsetCommitRequestTopic:
    name: s.String = s.field("0-9", default="")
    topic_id: s.Uuid = s.field("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitRequestPartition] = []


@s.request(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitRequest:
    """With generation -1 and an empty member ID, the client commits without being a member. retention_time_ms
    exists in versions 2 to 4; -1 means the default. Version 6 adds the leader epoch, version 7 adds static
    members, and version 9 adds members with a member epoch (consumer rebalance protocol). Version 10
    identifies topics by ID.
    """

    group_id: s.String = ""
    generation_id_or_member_epoch: s.Int32 = s.field("1+", default=-1)
    member_id: s.String = s.field("1+", default="")
    group_instance_id: s.NullableString = s.field("7+", default=None)
    retention_time_ms: s.Int64 = s.field("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = []


@s.struct
class OffsetCommitResponsePartition:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.struct
class OffsetCommitResponseTopic:
    name: s.String = s.field("0-9", default="")
    topic_id: s.Uuid = s.field("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition] = []


@s.response(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: s.Int32 = s.field("3+", default=0)
    topics: list[OffsetCommitResponseTopic] = []
