"""OffsetForLeaderEpoch (API key 23): the end offset of a leader epoch in a log (KIP-101)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class OffsetForLeaderPartition:
    """`leader_epoch` is the epoch whose end offset is requested."""

    partition: s.Int32 = 0
    current_leader_epoch: s.Int32 = s.field("2+", default=-1)
    leader_epoch: s.Int32 = 0


@s.struct
class OffsetForLeaderTopic:
    topic: s.String = ""
    partitions: list[OffsetForLeaderPartition] = []


@s.request(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Followers send this request to truncate their logs, and consumers to detect lost records (version 2,
    KIP-320). replica_id is -1 for a consumer, and -2 for a debugging tool.
    """

    replica_id: s.Int32 = s.field("3+", default=-2)
    topics: list[OffsetForLeaderTopic] = []


@s.struct
class EpochEndOffset:
    """The largest epoch not above the requested epoch, and its end offset. Both are -1 if unknown."""

    error_code: s.Int16 = 0
    partition: s.Int32 = 0
    leader_epoch: s.Int32 = s.field("1+", default=-1)
    end_offset: s.Int64 = -1


@s.struct
class OffsetForLeaderTopicResult:
    topic: s.String = ""
    partitions: list[EpochEndOffset] = []


@s.response(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: s.Int32 = s.field("2+", default=0)
    topics: list[OffsetForLeaderTopicResult] = []
