"""OffsetForLeaderEpoch (API key 23): return the end offset of a leader epoch, with which clients and
followers detect truncation (KIP-101, KIP-320).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied, cluster_allows
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 4)
def offset_for_leader_epoch(
    ctx: RequestContext, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    may_all = cluster_allows(ctx, Operation.CLUSTER_ACTION, logged=False)
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    refused: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        is_allowed = may_all or topic.topic not in denied
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        (response.topics if is_allowed else refused).append(result)
        for wanted in topic.partitions:
            if is_allowed:
                answer = _answer(ctx, topic.topic, wanted)
            else:
                answer = _error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            result.partitions.append(answer)
            yield None
    response.topics += refused
    return response


def _answer(ctx: RequestContext, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    replicas = ctx.services.replicas
    partition = replicas.get(topic, wanted.partition)
    if partition is None:
        code = replicas.missing(topic, wanted.partition)
    else:
        code = partition.check_leader_epoch(wanted.current_leader_epoch)
    if partition is None or code != ErrorCode.NONE:
        return _error(wanted, code)
    if wanted.leader_epoch == partition.leader_epoch:
        epoch, end_offset = partition.leader_epoch, partition.log.log_end_offset
    else:
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)


def _error(wanted: OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=wanted.partition, leader_epoch=-1, end_offset=-1)
