"""ReadShareGroupStateSummary (API key 87): the start offsets of share-partitions (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    partition: s.Int32 = 0
    leader_epoch: s.Int32 = 0


@s.struct
class ReadStateSummaryData:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.request(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    """Sent by the group coordinator to the share coordinator."""

    group_id: s.String = ""
    topics: list[ReadStateSummaryData] = []


@s.struct
class PartitionResult:
    """A share-partition. delivery_complete_count is the number of records at or after the start offset whose
    delivery is complete (KIP-1226), or -1 if it is unknown.
    """

    partition: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    state_epoch: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    start_offset: s.Int64 = 0
    delivery_complete_count: s.Int32 = s.field("1+", default=-1)


@s.struct
class ReadStateSummaryResult:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@s.response(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = []
