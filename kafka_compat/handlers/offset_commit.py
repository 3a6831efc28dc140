"""OffsetCommit (API key 8): store the committed offsets of a group.

Version 0 has no coordinator: every broker stores its offsets in the metadata store. Version 1 has a timestamp
for each partition, and versions 2 to 4 have one expiry time for all partitions. Version 6 adds leader epochs
(KIP-320), and version 7 adds static members (KIP-345). The response has an error code for each partition.
"""

from collections.abc import Coroutine
from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Commit, OffsetAndMetadata, PartitionErrors, TopicPartition
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 9)
def offset_commit(
    ctx: RequestContext, request: OffsetCommitRequest
) -> Steps[OffsetCommitResponse | Deferred] | Coroutine[Any, Any, OffsetCommitResponse]:
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    return _commit_to_store(ctx, request) if ctx.api_version == 0 else _commit(ctx, request)


def _commit(ctx: RequestContext, request: OffsetCommitRequest) -> Steps[OffsetCommitResponse | Deferred]:
    now_ms = ctx.services.clock.now_ms()
    expire_timestamp_ms = -1 if request.retention_time_ms == -1 else now_ms + request.retention_time_ms
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    refused: PartitionErrors = {}
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    order: list[TopicPartition] = []
    for topic in request.topics:
        for partition in topic.partitions:
            yield None
            key = (topic.name, partition.partition_index)
            order.append(key)
            if topic.name in denied:
                refused[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            offsets[key] = OffsetAndMetadata(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_ms if partition.commit_timestamp == -1 else partition.commit_timestamp,
                expire_timestamp_ms,
            )
    if not offsets:
        return (yield from _response(order, refused))
    commit = Commit(
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=offsets,
    )
    deferred = Deferred()
    yield from ctx.services.groups.commit_offsets(
        request.group_id,
        commit,
        lambda errors: ctx.long_work.start(_response(order, refused | errors), deferred.complete),
    )
    return deferred


async def _commit_to_store(ctx: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    offsets = ctx.services.zookeeper_offsets
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    errors: PartitionErrors = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            if topic.name in denied:
                errors[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            errors[key] = await offsets.commit(
                request.group_id, *key, wanted.committed_offset, wanted.committed_metadata
            )
    return await ctx.long_work.finish(_response(list(errors), errors))


def _response(order: list[TopicPartition], errors: PartitionErrors) -> Steps[OffsetCommitResponse]:
    topics: dict[str, OffsetCommitResponseTopic] = {}
    for topic, partition in order:
        yield None
        topics.setdefault(topic, OffsetCommitResponseTopic(name=topic)).partitions.append(
            OffsetCommitResponsePartition(partition_index=partition, error_code=errors[topic, partition])
        )
    return OffsetCommitResponse(topics=list(topics.values()))
