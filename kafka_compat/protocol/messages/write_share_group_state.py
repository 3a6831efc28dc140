"""WriteShareGroupState (API key 85): store changes to the state of share-partitions (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.initialize_share_group_state import PartitionResult
from kafka_compat.protocol.messages.read_share_group_state import StateBatch
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    """The changes to one share-partition. `start_offset` is -1 if it has not changed.
    delivery_complete_count is the number of records at or after the start offset whose delivery is complete
    (KIP-1226), or -1 if it is unknown.
    """

    partition: s.Int32 = 0
    state_epoch: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    start_offset: s.Int64 = 0
    delivery_complete_count: s.Int32 = s.field("1+", default=-1)
    state_batches: list[StateBatch] = []


@s.struct
class WriteStateData:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.request(ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    """Sent by the leader of partitions to the share coordinator."""

    group_id: s.String = ""
    topics: list[WriteStateData] = []


@s.struct
class WriteStateResult:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@s.response(ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = []
