"""DeleteShareGroupState (API key 86): delete the state of share-partitions (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.initialize_share_group_state import PartitionResult
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionData:
    partition: s.Int32 = 0


@s.struct
class DeleteStateData:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.request(ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    """Sent by the group coordinator to the share coordinator."""

    group_id: s.String = ""
    topics: list[DeleteStateData] = []


@s.struct
class DeleteStateResult:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@s.response(ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = []
