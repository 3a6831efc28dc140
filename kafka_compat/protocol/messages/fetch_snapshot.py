"""FetchSnapshot (API key 59): fetch a part of a metadata snapshot (KIP-630)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.vote import NodeEndpoint
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class SnapshotId:
    """The offset at which a snapshot ends, and the epoch of the last record before that offset."""

    end_offset: s.Int64 = 0
    epoch: s.Int32 = 0


@s.struct
class PartitionSnapshot:
    """The snapshot, and the byte position of the requested part in it."""

    partition: s.Int32 = 0
    current_leader_epoch: s.Int32 = 0
    snapshot_id: SnapshotId = s.field("0+", default_factory=SnapshotId)
    position: s.Int64 = 0
    replica_directory_id: s.Uuid = s.field("1+", default=ZERO_UUID, tag=0)


@s.struct
class TopicSnapshot:
    name: s.String = ""
    partitions: list[PartitionSnapshot] = []


@s.request(ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotRequest:
    """Version 1 adds the replica's directory ID (KIP-853). `max_bytes` limits the part's size."""

    cluster_id: s.NullableString = s.field("0+", default=None, tag=0)
    replica_id: s.Int32 = -1
    max_bytes: s.Int32 = 0x7FFFFFFF
    topics: list[TopicSnapshot] = []


@s.struct
class LeaderIdAndEpoch:
    """The leader and epoch that the responding node knows."""

    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0


@s.struct
class ResponsePartitionSnapshot:
    """A part of the snapshot: `size` is the size of the whole snapshot in bytes. `unaligned_records` may
    begin and end within a batch; it must be set to b"" after an error, because it cannot be null.
    """

    index: s.Int32 = 0
    error_code: s.Int16 = 0
    snapshot_id: SnapshotId = s.field("0+", default_factory=SnapshotId)
    current_leader: LeaderIdAndEpoch = s.field("0+", default_factory=LeaderIdAndEpoch, tag=0)
    size: s.Int64 = 0
    position: s.Int64 = 0
    unaligned_records: s.NullableRecords = s.field("0+", default=None, nullable="none")


@s.struct
class ResponseTopicSnapshot:
    name: s.String = ""
    partitions: list[ResponsePartitionSnapshot] = []


@s.response(ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    """`error_code` applies to the whole request, for example INCONSISTENT_CLUSTER_ID."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    topics: list[ResponseTopicSnapshot] = []
    node_endpoints: list[NodeEndpoint] = s.field("1+", default=[], tag=0)
