"""Fetch (API key 1): read records of topic partitions, as a consumer or as a follower."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class ReplicaState:
    """A follower's ID (-1: a consumer) and epoch, which fences requests from before a restart (KIP-903)."""

    replica_id: s.Int32 = s.field("15+", default=-1)
    replica_epoch: s.Int64 = s.field("15+", default=-1)


@s.struct
class FetchPartition:
    """The fetch offset and the maximum size for one partition. `current_leader_epoch` fences stale readers
    (KIP-320), and `last_fetched_epoch` lets a leader detect divergence (KIP-595); -1 means unknown.
    """

    partition: s.Int32 = 0
    current_leader_epoch: s.Int32 = s.field("9+", default=-1)
    fetch_offset: s.Int64 = 0
    last_fetched_epoch: s.Int32 = s.field("12+", default=-1)
    log_start_offset: s.Int64 = s.field("5+", default=-1)
    partition_max_bytes: s.Int32 = 0
    replica_directory_id: s.Uuid = s.field("17+", default=ZERO_UUID, tag=0)
    high_watermark: s.Int64 = s.field("18+", default=0x7FFFFFFFFFFFFFFF, tag=1)


@s.struct
class FetchTopic:
    """Partitions of one topic, identified by name in versions 0 to 12, and by ID in later versions."""

    topic: s.String = s.field("0-12", default="")
    topic_id: s.Uuid = s.field("13+", default=ZERO_UUID)
    partitions: list[FetchPartition] = []


@s.struct
class ForgottenTopic:
    """Partitions to remove from the fetch session."""

    topic: s.String = s.field("7-12", default="")
    topic_id: s.Uuid = s.field("13+", default=ZERO_UUID)
    partitions: list[s.Int32] = s.field("7+", default=[])


@request(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchRequest:
    """The response is sent when `min_bytes` are available or `max_wait_ms` has passed. isolation_level is 0
    (read_uncommitted) or 1 (read_committed). For sessions (version 7, KIP-227), session_id 0 with epoch 0
    requests a new session, and epoch -1 requests none; later requests contain only changes. The version
    determines the record format: versions 0 and 1 return message format 0, versions 2 and 3 format 1, and
    later versions format 2; zstd requires version 10. Version 12 is flexible. Versions 13, 15 and 16 add
    topic IDs, the tagged replica ID, and new leaders' addresses in the response. Versions 17 and 18 add
    fields for KRaft followers.
    """

    cluster_id: s.NullableString = s.field("12+", default=None, tag=0)
    replica_id: s.Int32 = s.field("0-14", default=-1)
    replica_state: ReplicaState = s.field("15+", default_factory=ReplicaState, tag=1)
    max_wait_ms: s.Int32 = 0
    min_bytes: s.Int32 = 0
    max_bytes: s.Int32 = s.field("3+", default=0x7FFFFFFF)
    isolation_level: s.Int8 = s.field("4+", default=0)
    session_id: s.Int32 = s.field("7+", default=0)
    session_epoch: s.Int32 = s.field("7+", default=-1)
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = s.field("7+", default=[])
    rack_id: s.String = s.field("11+", default="")


@s.struct
class EpochEndOffset:
    """The end of the epoch in which a follower's log diverges from the leader's, or -1 if the logs agree."""

    epoch: s.Int32 = s.field("12+", default=-1)
    end_offset: s.Int64 = s.field("12+", default=-1)


@s.struct
class LeaderIdAndEpoch:
    """The current leader, to which the client must send its requests, or -1 if it is unknown."""

    leader_id: s.Int32 = s.field("12+", default=-1)
    leader_epoch: s.Int32 = s.field("12+", default=-1)


@s.struct
class SnapshotId:
    """A snapshot that a KRaft follower must fetch, or -1 if there is none."""

    end_offset: s.Int64 = -1
    epoch: s.Int32 = -1


@s.struct
class AbortedTransaction:
    """Consumers must skip this producer's records from `first_offset` to the abort marker."""

    producer_id: s.Int64 = s.field("4+", default=0)
    first_offset: s.Int64 = s.field("4+", default=0)


@s.struct
class PartitionData:
    """Records of one partition, in whole batches; the last batch may be truncated. Offsets are -1 after an
    error. `aborted_transactions` is null unless isolation_level is read_committed. `preferred_read_replica`
    is a nearer replica from which the consumer must continue (KIP-392), or -1.
    """

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    high_watermark: s.Int64 = 0
    last_stable_offset: s.Int64 = s.field("4+", default=-1)
    log_start_offset: s.Int64 = s.field("5+", default=-1)
    diverging_epoch: EpochEndOffset = s.field("12+", default_factory=EpochEndOffset, tag=0)
    current_leader: LeaderIdAndEpoch = s.field("12+", default_factory=LeaderIdAndEpoch, tag=1)
    snapshot_id: SnapshotId = s.field("12+", default_factory=SnapshotId, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = s.field("4+", default=[])
    preferred_read_replica: s.Int32 = s.field("11+", default=-1)
    records: s.NullableRecords = None


@s.struct
class FetchableTopicResponse:
    topic: s.String = s.field("0-12", default="")
    topic_id: s.Uuid = s.field("13+", default=ZERO_UUID)
    partitions: list[PartitionData] = []


@s.struct
class NodeEndpoint:
    """The address of a leader named in the response (KIP-951)."""

    node_id: s.Int32 = s.field("16+", default=0)
    host: s.String = s.field("16+", default="")
    port: s.Int32 = s.field("16+", default=0)
    rack: s.NullableString = s.field("16+", default=None)


@response(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchResponse:
    """`error_code` (version 7) applies to the session. In a session, unchanged partitions are omitted."""

    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    error_code: s.Int16 = s.field("7+", default=0)
    session_id: s.Int32 = s.field("7+", default=0)
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = s.field("16+", default=[], tag=0)
