"""DeleteRecords (key 21): move the log start of partitions forward; offset -1 means the high watermark
(KIP-107).

Answered when the logs of all living replicas start there, which followers learn with their next fetch; those
that take longer than the request's timeout get REQUEST_TIMED_OUT, and the records are deleted none the less.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition

HIGH_WATERMARK = -1
UNKNOWN_LOW_WATERMARK = -1


@handler(ApiKey.DELETE_RECORDS)
async def delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    deletions = _Deletions(ctx)
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[deletions.begin(topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    # Who was told that records are deleted does not get them back after a crash.
    await ctx.broker.flusher.run(ctx.broker.log_dirs.checkpoint_log_start_offsets)
    await deletions.finish(request.timeout_ms)
    return response


class _Deletions:
    """The partitions of one request, and those of them that followers have not come to yet."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._pending: list[asyncio.Future[None]] = []

    def begin(self, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        """Delete here; the result may change until `finish` returns."""
        replicas = self._ctx.broker.replicas
        index = wanted.partition_index
        try:
            if is_internal(topic):
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            partition = replicas.get(topic, index)
            if partition is None:
                raise KafkaError(replicas.missing(topic, index))
            if not partition.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if not partition.log.config.delete:
                raise KafkaError(ErrorCode.POLICY_VIOLATION)
            offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
            if offset < 0 or offset > partition.high_watermark:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            partition.log.advance_log_start_offset(offset)
        except (KafkaError, StorageError) as error:
            return DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=UNKNOWN_LOW_WATERMARK, error_code=code_of(error)
            )
        result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.low_watermark())
        if result.low_watermark < offset:
            self._wait(partition, offset, result)
        return result

    def _wait(self, partition: Partition, offset: int, result: DeleteRecordsPartitionResult) -> None:
        pending: asyncio.Future[None] = self._ctx.broker.loop.create_future()
        self._pending.append(pending)
        result.error_code = ErrorCode.REQUEST_TIMED_OUT

        def reached(code: ErrorCode) -> None:
            if not pending.done():
                result.error_code = code
                result.low_watermark = UNKNOWN_LOW_WATERMARK if code else partition.low_watermark()
                pending.set_result(None)

        partition.when_deleted(offset, reached)

    async def finish(self, timeout_ms: int) -> None:
        """Wait for the followers, for at most that long."""
        if self._pending:
            await asyncio.wait(self._pending, timeout=max(timeout_ms, 0) / 1000)
            for pending in self._pending:
                pending.cancel()
