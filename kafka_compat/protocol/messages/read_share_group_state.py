"""ReadShareGroupState (API key 84): the state of share-partitions (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    partition: s.Int32 = 0
    leader_epoch: s.Int32 = 0


@s.struct
class ReadStateData:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.request(ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    """Sent by the leader of partitions to the share coordinator, which rejects a lower leader epoch than the
    stored one with FENCED_LEADER_EPOCH.
    """

    group_id: s.String = ""
    topics: list[ReadStateData] = []


@s.struct
class StateBatch:
    """The state of the records from `first_offset` to `last_offset`. delivery_state is 0 (available),
    2 (acknowledged), 3 (archiving) or 4 (archived).
    """

    first_offset: s.Int64 = 0
    last_offset: s.Int64 = 0
    delivery_state: s.Int8 = 0
    delivery_count: s.Int16 = 0


@s.struct
class PartitionResult:
    """The state of one share-partition. `start_offset` is -1 if it is not yet known."""

    partition: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    state_epoch: s.Int32 = 0
    start_offset: s.Int64 = 0
    state_batches: list[StateBatch] = []


@s.struct
class ReadStateResult:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@s.response(ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = []
