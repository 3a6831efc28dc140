"""Fetch (API key 1): read records of topic partitions, as a consumer or as a follower."""

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
    """The follower that fetches; replica_id -1 is a consumer. The epoch fences restarted brokers
    (KIP-903).
    """

    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


@struct
class FetchPartition:
    """From where to read, and at most how much. `current_leader_epoch` fences stale readers (KIP-320),
    `last_fetched_epoch` lets a leader find divergence (KIP-595); -1 is unknown.
    """

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
    """Partitions of one topic, by name until version 12, by id since version 13."""

    topic: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[FetchPartition] = []


@struct
class ForgottenTopic:
    """Partitions that leave the fetch session."""

    topic: String = field("7-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[Int32] = field("7+", default=[])


@request(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchRequest:
    """Answered when `min_bytes` are there or `max_wait_ms` have passed. isolation_level: 0 read_uncommitted,
    1 read_committed. Sessions (version 7, KIP-227): session_id 0 with epoch 0 asks for a new one, epoch -1
    for none; then each request names only what has changed.
    The format of the records follows the version: 0 and 1 get message format 0, 2 and 3 format 1, from 4 on
    format 2; zstd needs version 10. Version 12 is flexible, 13 names topics by id, 15 moves the replica id
    into a tagged field, 16 may point to a new leader, 17 and 18 add what KRaft followers tell.
    """

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
    """Where the log of a follower leaves that of the leader: the epoch and its end; -1 when it does not."""

    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


@struct
class LeaderIdAndEpoch:
    """The leader to go to in place of this broker; -1 when unknown."""

    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


@struct
class SnapshotId:
    """A snapshot that a KRaft follower has to fetch; -1 when none."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    """Records of this producer from `first_offset` to its abort marker are not to be shown."""

    producer_id: Int64 = field("4+", default=0)
    first_offset: Int64 = field("4+", default=0)


@struct
class PartitionData:
    """Records of one partition, whole batches; the last may be cut off. Offsets are -1 with an error.
    `aborted_transactions` is null for readers that are not read_committed. `preferred_read_replica` sends a
    consumer to a nearer replica (KIP-392).
    """

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
    """Partitions of one topic."""

    topic: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[PartitionData] = []


@struct
class NodeEndpoint:
    """Address of a leader that is named in this answer (KIP-951)."""

    node_id: Int32 = field("16+", default=0)
    host: String = field("16+", default="")
    port: Int32 = field("16+", default=0)
    rack: NullableString = field("16+", default=None)


@response(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchResponse:
    """`error_code` (version 7) concerns the session. In a session, partitions without news are left out."""

    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("7+", default=0)
    session_id: Int32 = field("7+", default=0)
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = field("16+", default=[], tag=0)
