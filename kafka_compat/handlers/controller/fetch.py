"""Fetch (API key 1) on a controller listener: a replica fetches the records of the metadata log (KIP-595).

The response is sent when there are records or a higher high watermark, or after max_wait_ms.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.api.caller import Session
from kafka_compat.api.handler import handler
from kafka_compat.coordination.raft.effects import AnswerFetch
from kafka_compat.coordination.raft.events import FetchRequested, RaftError
from kafka_compat.coordination.raft.values import ReplicaKey
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import leader_address, node_of
from kafka_compat.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC_ID
from kafka_compat.quorum.node import QuorumNode
from kafka_compat.quorum.requests import error_code
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_BYTES_MAX: Final = 8 * 1024 * 1024
_WAIT_MS_MAX: Final = 60_000


@handler(13, 18)
def fetch(ctx: ListenerContext, request: FetchRequest) -> FetchResponse | Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    if request.cluster_id is not None and request.cluster_id != node.local.cluster_id:
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_id != TOPIC_ID or len(topics[0].partitions) != 1:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    partition = topics[0].partitions[0]
    if partition.partition != PARTITION:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    replica_id = request.replica_state.replica_id if ctx.api_version >= 15 else request.replica_id

    def asked(request_id: int) -> FetchRequested:
        return FetchRequested(
            request_id,
            ReplicaKey(replica_id, partition.replica_directory_id),
            partition.current_leader_epoch,
            partition.fetch_offset,
            partition.last_fetched_epoch,
            partition.high_watermark,
            min(request.max_wait_ms, _WAIT_MS_MAX),
        )

    def response(answer: AnswerFetch) -> FetchResponse:
        result = PartitionData(
            partition_index=PARTITION,
            error_code=error_code(answer.error),
            high_watermark=answer.high_watermark,
            log_start_offset=node.log.start_offset,
            current_leader=LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
            aborted_transactions=None,
            records=b"",
        )
        if answer.diverging is not None:
            result.diverging_epoch = EpochEndOffset(
                epoch=answer.diverging.epoch, end_offset=answer.diverging.offset
            )
        elif answer.snapshot is not None:
            result.snapshot_id = SnapshotId(end_offset=answer.snapshot.offset, epoch=answer.snapshot.epoch)
        elif answer.error is RaftError.NONE and answer.offset < answer.end_offset:
            max_bytes = min(request.max_bytes, _BYTES_MAX)
            result.records = node.log.read(answer.offset, answer.end_offset, max_bytes)
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[result])
        address = leader_address(node, answer.leader_id)
        endpoints = []
        if address is not None:
            endpoints.append(NodeEndpoint(node_id=answer.leader_id, host=address[0], port=address[1]))
        return FetchResponse(responses=[topic], node_endpoints=endpoints)

    if replica_id >= 0:
        session = ctx.caller.session
        session.when_left(node, partial(_left, node, replica_id, session))
    return node.ask(asked, response)


def _left(node: QuorumNode, replica_id: int, session: Session) -> None:
    if session.has_closed:
        node.replica_left(replica_id)
