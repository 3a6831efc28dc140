"""TxnOffsetCommit (API key 28): store offsets of a group as part of a transaction."""

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
class TxnOffsetCommitRequestPartition:
    """As in OffsetCommit."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field("2+", default=-1)
    committed_metadata: NullableString = ""


@struct
class TxnOffsetCommitRequestTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


@request(ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """The offsets show when the transaction commits. Version 3 fences by generation and member (KIP-447);
    since version 5 the coordinator adds the group to the transaction itself (KIP-890).
    """

    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: NullableString = field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = []


@struct
class TxnOffsetCommitResponsePartition:
    """Whether the offset of one partition is taken."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


@response(ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """Topics are answered one by one."""

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
