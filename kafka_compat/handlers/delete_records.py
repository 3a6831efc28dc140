"""DeleteRecords (API key 21): delete records before an offset (KIP-107). Offset -1 means the high watermark.

The response is sent when the new log start offset is on this broker's disk and the logs of all live replicas
start at this offset, which followers receive with their next fetch. Partitions that exceed the request's
timeout get REQUEST_TIMED_OUT, but their records are deleted. If the log start offset cannot be stored, for
example because the disk is full, the error is KAFKA_STORAGE_ERROR, and clients retry: the records can no
longer be read, but might reappear after a crash.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied
from kafka_compat.metadata.topic_names import is_internal
from kafka_compat.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_compat.replication.disk_work import finished
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition


HIGH_WATERMARK = -1
UNKNOWN_LOW_WATERMARK = -1


@handler(0, 2)
async def delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    deletions = _Deletions(ctx)
    response = DeleteRecordsResponse()
    turn = await ctx.long_work.begin()
    for topic in request.topics:
        result = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(result)
        for wanted in topic.partitions:
            result.partitions.append(deletions.begin(topic.name, wanted))
            await turn.pause_if_due()
    # Store the new log start offsets before responding: reported deletions must survive a crash.
    await deletions.store()
    await deletions.finish(request.timeout_ms)
    deletions.tell_refusals()
    return response


class _Deletions:
    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._pending: list[asyncio.Future[None]] = []
        self._begun: list[tuple[str, DeleteRecordsPartitionResult]] = []
        """Log directory and result of each partition whose records this broker has deleted."""
        self._refusals: dict[str, Exception] = {}
        self._denied = Denied(ctx, Operation.DELETE, ResourceType.TOPIC)

    def begin(self, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        """Delete a partition's records on this broker. `finish` and `tell_refusals` may change the result."""
        replicas = self._ctx.services.replicas
        index = wanted.partition_index
        try:
            if topic in self._denied:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
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
        self._begun.append((partition.log.disk.path, result))
        if result.low_watermark < offset:
            self._wait(partition, offset, result)
        return result

    def _wait(self, partition: Partition, offset: int, result: DeleteRecordsPartitionResult) -> None:
        pending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append(pending)
        result.error_code = ErrorCode.REQUEST_TIMED_OUT

        def reached(code: ErrorCode) -> None:
            if not pending.done():
                result.error_code = code
                result.low_watermark = UNKNOWN_LOW_WATERMARK if code else partition.low_watermark()
                pending.set_result(None)

        partition.when_deleted(offset, reached)

    async def store(self) -> None:
        log_dirs = self._ctx.services.log_dirs
        paths = list(dict.fromkeys(path for path, _ in self._begun))
        errors = await asyncio.gather(*(finished(partial(log_dirs.store_log_starts, path)) for path in paths))
        self._refusals = {path: error for path, error in zip(paths, errors, strict=True) if error is not None}

    def tell_refusals(self) -> None:
        """Set the error code of each partition whose log start offset could not be stored."""
        for path, result in self._begun:
            error = self._refusals.get(path)
            if error is not None:
                result.error_code = code_of(error)
                result.low_watermark = UNKNOWN_LOW_WATERMARK

    async def finish(self, timeout_ms: int) -> None:
        """Wait up to `timeout_ms` for the followers to delete the records."""
        if self._pending:
            await asyncio.wait(self._pending, timeout=max(timeout_ms, 0) / 1000)
            for pending in self._pending:
                pending.cancel()
