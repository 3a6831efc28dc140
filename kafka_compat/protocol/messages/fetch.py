"""Fetch (API key 1)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class ReplicaState:
    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


@struct
class FetchPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = field("9+", default=-1)
    fetch_offset: Int64 = 0
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    partition_max_bytes: Int32 = 0
    replica_directory_id: Uuid = field("17+", default=ZERO_UUID, tag=0)
    high_watermark: Int64 = field("18+", default=0x7FFFFFFFFFFFFFFF, tag=1)


@struct
class FetchTopic:
    topic: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[FetchPartition] = []


@struct
class ForgottenTopic:
    topic: String = field("7-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[Int32] = field("7+", default=[])


@request(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchRequest:
    cluster_id: NullableString = field("12+", default=None, tag=0)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", default_factory=ReplicaState, tag=1)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = field("3+", default=0x7FFFFFFF)
    isolation_level: Int8 = field("4+", default=0)
    session_id: Int32 = field("7+", default=0)
    session_epoch: Int32 = field("7+", default=-1)
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = field("7+", default=[])
    rack_id: String = field("11+", default="")


@struct
class EpochEndOffset:
    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


@struct
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    producer_id: Int64 = field("4+", default=0)
    first_offset: Int64 = field("4+", default=0)


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = field("4+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    diverging_epoch: EpochEndOffset = field("12+", default_factory=EpochEndOffset, tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", default_factory=LeaderIdAndEpoch, tag=1)
    snapshot_id: SnapshotId = field("12+", default_factory=SnapshotId, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field("4+", default=[])
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: NullableRecords = None


@struct
class FetchableTopicResponse:
    topic: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[PartitionData] = []


@struct
class NodeEndpoint:
    node_id: Int32 = field("16+", default=0)
    host: String = field("16+", default="")
    port: Int32 = field("16+", default=0)
    rack: NullableString = field("16+", default=None)


@response(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("7+", default=0)
    session_id: Int32 = field("7+", default=0)
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = field("16+", default=[], tag=0)
