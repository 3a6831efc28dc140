"""TxnOffsetCommit (API key 28): store a group's offsets as part of a transaction."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class TxnOffsetCommitRequestPartition:
    """An offset to commit, with the same fields as in OffsetCommit."""

    partition_index: s.Int32 = 0
    committed_offset: s.Int64 = 0
    committed_leader_epoch: s.Int32 = s.field("2+", default=-1)
    committed_metadata: s.NullableString = ""


@s.struct
class TxnOffsetCommitRequestTopic:
    name: s.String = s.field("0-5", default="")
    topic_id: s.Uuid = s.field("6+", default=ZERO_UUID)
    partitions: list[TxnOffsetCommitRequestPartition] = []


@s.request(ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest:
    """The offsets become visible when the transaction commits. In version 3 and later, the generation and
    member ID fence replaced members (KIP-447); in version 5 and later, the coordinator itself adds the group
    to the transaction (KIP-890). Version 6 adds members with a member epoch, and identifies topics by ID.
    """

    transactional_id: s.String = ""
    group_id: s.String = ""
    producer_id: s.Int64 = 0
    producer_epoch: s.Int16 = 0
    generation_id_or_member_epoch: s.Int32 = s.field("3+", default=-1)
    member_id: s.String = s.field("3+", default="")
    group_instance_id: s.NullableString = s.field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = []


@s.struct
class TxnOffsetCommitResponsePartition:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.struct
class TxnOffsetCommitResponseTopic:
    name: s.String = s.field("0-5", default="")
    topic_id: s.Uuid = s.field("6+", default=ZERO_UUID)
    partitions: list[TxnOffsetCommitResponsePartition] = []


@s.response(ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: s.Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
