"""OffsetCommit (API key 8): store the committed offsets of a group.

Version 0 has no coordinator: every broker stores its offsets in the metadata store. Version 1 has a timestamp
for each partition, and versions 2 to 4 have one expiry time for all partitions. Version 6 adds leader epochs
(KIP-320), and version 7 adds static members (KIP-345). In version 9 and later, members of consumer groups
send their epoch as the generation (KIP-848). Version 10 identifies topics by ID. The response has an error
code for each partition.
"""

from collections.abc import Coroutine
from typing import Any, Final
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Commit, OffsetAndMetadata, PartitionErrors, TopicPartition
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.commit_order import CommittedPartition, in_response_order
from kafka_compat.handlers.feature_gates import has_level
from kafka_compat.long_work import Steps
from kafka_compat.metadata.features import GROUP_VERSION
from kafka_compat.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.security.authorizer import Operation, ResourceType

_FIRST_VERSION_WITH_EPOCHS: Final = 9
_FIRST_VERSION_WITH_IDS: Final = 10

_Order = list[CommittedPartition]


@handler(0, 10)
def offset_commit(
    ctx: RequestContext, request: OffsetCommitRequest
) -> Steps[OffsetCommitResponse | Deferred] | Coroutine[Any, Any, OffsetCommitResponse]:
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    return _commit_to_store(ctx, request) if ctx.api_version == 0 else _commit(ctx, request)


def _commit(ctx: RequestContext, request: OffsetCommitRequest) -> Steps[OffsetCommitResponse | Deferred]:
    now_ms = ctx.services.clock.now_ms()
    expire_timestamp_ms = -1 if request.retention_time_ms == -1 else now_ms + request.retention_time_ms
    metadata = ctx.services.metadata
    is_by_id = ctx.api_version >= _FIRST_VERSION_WITH_IDS
    has_group_version = has_level(ctx, GROUP_VERSION)
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    refused: PartitionErrors = {}
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    order: _Order = []
    for topic in request.topics:
        name = metadata.topic_name(topic.topic_id) or "" if is_by_id else topic.name
        known = metadata.topics.get(name)
        topic_id = known.topic_id if known is not None and has_group_version else None
        for partition in topic.partitions:
            yield None
            key = (name, partition.partition_index)
            order.append((topic.topic_id, *key))
            if is_by_id and not name:
                refused[key] = ErrorCode.UNKNOWN_TOPIC_ID
                continue
            if name in denied:
                refused[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            offsets[key] = OffsetAndMetadata(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_ms if partition.commit_timestamp == -1 else partition.commit_timestamp,
                expire_timestamp_ms,
                topic_id,
            )
    if not offsets:
        return (yield from _response(order, refused))
    has_epochs = ctx.api_version >= _FIRST_VERSION_WITH_EPOCHS
    missing_group_error = ErrorCode.ILLEGAL_GENERATION
    if has_epochs and has_group_version:
        # Kafka 3.9 responds ILLEGAL_GENERATION in all versions.
        missing_group_error = ErrorCode.GROUP_ID_NOT_FOUND
    commit = Commit(
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=offsets,
        has_member_epochs=has_epochs,
        missing_group_error=missing_group_error,
    )
    deferred = Deferred()
    yield from ctx.services.groups.offsets.commit(
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
    return await ctx.long_work.finish(_response([(ZERO_UUID, *key) for key in errors], errors))


def _response(order: _Order, errors: PartitionErrors) -> Steps[OffsetCommitResponse]:
    topics: dict[tuple[UUID, str], OffsetCommitResponseTopic] = {}
    for topic_id, name, partition in (yield from in_response_order(order, errors)):
        yield None
        topic = topics.get((topic_id, name))
        if topic is None:
            topic = topics[topic_id, name] = OffsetCommitResponseTopic(name=name, topic_id=topic_id)
        topic.partitions.append(
            OffsetCommitResponsePartition(partition_index=partition, error_code=errors[name, partition])
        )
    return OffsetCommitResponse(topics=list(topics.values()))
