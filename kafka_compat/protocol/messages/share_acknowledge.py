"""ShareAcknowledge (API key 79): acknowledge the records of a share group without fetching (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.share_fetch import AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class AcknowledgePartition:
    partition_index: s.Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


@s.struct
class AcknowledgeTopic:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = []


@s.request(ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """The session epoch and the acknowledgements have the same meaning as in ShareFetch."""

    group_id: s.NullableString = None
    member_id: s.NullableString = ""
    share_session_epoch: s.Int32 = 0
    is_renew_ack: s.Bool = s.field("2+", default=False)
    topics: list[AcknowledgeTopic] = []


@s.struct
class PartitionData:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    current_leader: LeaderIdAndEpoch = s.field(default_factory=LeaderIdAndEpoch)


@s.struct
class ShareAcknowledgeTopicResponse:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.response(ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """Renewed acquisition locks last for acquisition_lock_timeout_ms (version 2)."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    acquisition_lock_timeout_ms: s.Int32 = s.field("2+", default=0)
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
