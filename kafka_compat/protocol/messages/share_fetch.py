"""ShareFetch (API key 78): acquire records for a member of a share group (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class AcknowledgementBatch:
    """A range of offsets to acknowledge, from `first_offset` to `last_offset`. acknowledge_types contains one
    type for the whole range, or one for each offset: 0 is a gap without a record, 1 is accept, 2 is release,
    3 is reject, and 4 is renew (version 2).
    """

    first_offset: s.Int64 = 0
    last_offset: s.Int64 = 0
    acknowledge_types: list[s.Int8] = []


@s.struct
class FetchPartition:
    partition_index: s.Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


@s.struct
class FetchTopic:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[FetchPartition] = []


@s.struct
class ForgottenTopic:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[s.Int32] = []


@s.request(ApiKey.SHARE_FETCH, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """share_session_epoch is 0 to open a share session and -1 to close it. In between, each request increases
    it by one, and contains only the partitions that are new or have acknowledgements.

    If share_acquire_mode (version 2, KIP-1206) is 0, the response contains whole batches and may exceed
    max_records; if it is 1, max_records is exact. `batch_size` is the preferred number of records in each
    range of acquired records. is_renew_ack announces that the request renews acquisition locks (KIP-1222).
    """

    group_id: s.NullableString = None
    member_id: s.NullableString = ""
    share_session_epoch: s.Int32 = 0
    max_wait_ms: s.Int32 = 0
    min_bytes: s.Int32 = 0
    max_bytes: s.Int32 = 2147483647
    max_records: s.Int32 = 0
    batch_size: s.Int32 = 0
    share_acquire_mode: s.Int8 = s.field("2+", default=0)
    is_renew_ack: s.Bool = s.field("2+", default=False)
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


@s.struct
class LeaderIdAndEpoch:
    """The current leader of a partition, or -1 if it is unknown."""

    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0


@s.struct
class AcquiredRecords:
    """A range of offsets that the member has acquired. `delivery_count` includes this delivery."""

    first_offset: s.Int64 = 0
    last_offset: s.Int64 = 0
    delivery_count: s.Int16 = 0


@s.struct
class PartitionData:
    """The records of one partition, of which the member may process only those in `acquired_records`, and the
    result of its acknowledgements.
    """

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    acknowledge_error_code: s.Int16 = 0
    acknowledge_error_message: s.NullableString = None
    current_leader: LeaderIdAndEpoch = s.field(default_factory=LeaderIdAndEpoch)
    records: s.NullableRecords = s.field(default=None, nullable="none")
    acquired_records: list[AcquiredRecords] = []


@s.struct
class ShareFetchableTopicResponse:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@s.struct
class NodeEndpoint:
    """The address of a leader named in the response."""

    node_id: s.Int32 = 0
    host: s.String = ""
    port: s.Int32 = 0
    rack: s.NullableString = None


@s.response(ApiKey.SHARE_FETCH, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """Acquired records are locked for acquisition_lock_timeout_ms."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    acquisition_lock_timeout_ms: s.Int32 = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
