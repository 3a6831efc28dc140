"""OffsetForLeaderEpoch (key 23): where an epoch ended, so that a reader finds out what was truncated
(KIP-101, KIP-320).
"""

from __future__ import annotations

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@handler(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def offset_for_leader_epoch(
    ctx: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(ctx, topic.topic, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(ctx: RequestContext, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    replicas = ctx.broker.replicas
    partition = replicas.get(topic, wanted.partition)
    if partition is None:
        code = replicas.missing(topic, wanted.partition)
    else:
        code = partition.check_leader_epoch(wanted.current_leader_epoch)
    if partition is None or code != ErrorCode.NONE:
        return EpochEndOffset(error_code=code, partition=wanted.partition, leader_epoch=-1, end_offset=-1)
    if wanted.leader_epoch == partition.leader_epoch:
        epoch, end_offset = partition.leader_epoch, partition.log.log_end_offset
    else:
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
