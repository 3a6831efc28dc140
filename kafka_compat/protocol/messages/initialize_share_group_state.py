"""InitializeShareGroupState (API key 83): create the state of share-partitions (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    """The first state of a share-partition. If `start_offset` is -1, the first fetch determines it."""

    partition: s.Int32 = 0
    state_epoch: s.Int32 = 0
    start_offset: s.Int64 = 0


@s.struct
class InitializeStateData:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.request(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    """Sent by the group coordinator to the share coordinator."""

    group_id: s.String = ""
    topics: list[InitializeStateData] = []


@s.struct
class PartitionResult:
    partition: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None


@s.struct
class InitializeStateResult:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@s.response(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = []
