"""DeleteRecords (key 21): move the log start of partitions forward; offset -1 means the high watermark
(KIP-107).
"""

from __future__ import annotations

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_compat.topic_names import is_internal
from storage.errors import StorageError

HIGH_WATERMARK = -1


@handler(ApiKey.DELETE_RECORDS)
async def delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(ctx, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    # Who was told that records are deleted does not get them back after a crash.
    await ctx.broker.flusher.run(ctx.broker.log_dirs.checkpoint_log_start_offsets)
    return response


def _delete(ctx: RequestContext, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    replicas = ctx.broker.replicas
    index = wanted.partition_index
    try:
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = replicas.get(topic, index)
        if partition is None:
            raise KafkaError(replicas.missing(topic, index))
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = partition.log
        if not log.config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
        if offset < 0 or offset > partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.advance_log_start_offset(offset)
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=log.log_start_offset)
    except (KafkaError, StorageError) as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=-1, error_code=code_of(error)
        )
