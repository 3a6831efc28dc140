"""FetchSnapshot (API key 59): return a part of a snapshot of the metadata (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerSnapshot
from kafka_compat.coordination.raft.events import RaftError, SnapshotRequested
from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import leader_endpoints, node_of, require_same_cluster
from kafka_compat.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
)
from kafka_compat.quorum.checkpoints import PositionOutOfRange
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC
from kafka_compat.quorum.requests import error_code
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_BYTES_MAX: Final = 8 * 1024 * 1024


@handler(0, 1)
def fetch_snapshot(ctx: ListenerContext, request: FetchSnapshotRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)
    topics = request.topics
    if len(topics) != 1 or topics[0].name != TOPIC or len(topics[0].partitions) != 1:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topics[0].partitions[0]
    snapshot = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)

    def asked(request_id: int) -> SnapshotRequested:
        replica = ReplicaKey(request.replica_id, partition.replica_directory_id)
        return SnapshotRequested(request_id, replica, partition.current_leader_epoch, snapshot)

    def response(answer: AnswerSnapshot) -> FetchSnapshotResponse:
        result = ResponsePartitionSnapshot(
            index=PARTITION,
            error_code=error_code(answer.error),
            snapshot_id=partition.snapshot_id,
            current_leader=LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
            unaligned_records=b"",
        )
        if answer.error is RaftError.NONE:
            max_bytes = min(request.max_bytes, _BYTES_MAX)
            try:
                part, result.size = node.checkpoints.read(snapshot, partition.position, max_bytes)
            except FileNotFoundError:
                result.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            except PositionOutOfRange:
                result.error_code = ErrorCode.POSITION_OUT_OF_RANGE
            else:
                result.unaligned_records, result.position = part, partition.position
        return FetchSnapshotResponse(
            topics=[ResponseTopicSnapshot(name=TOPIC, partitions=[result])],
            node_endpoints=leader_endpoints(node, answer.leader_id),
        )

    return node.ask(asked, response)
