"""OffsetCommit (key 8): store the positions of a group.

Version 0 knows no coordinator: any broker keeps its offsets in the metadata store. Version 1 alone carries a
timestamp per partition, 2 to 4 an expiry for all; 6 brings leader epochs (KIP-320), 7 static members
(KIP-345). Every answer says per partition how it went.
"""

from __future__ import annotations

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.groups.model import Commit, OffsetAndMetadata, PartitionErrors
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


@handler(ApiKey.OFFSET_COMMIT)
def offset_commit(ctx: RequestContext, request: OffsetCommitRequest) -> object:
    if ctx.api_version == 0:
        return _commit_to_store(ctx, request)
    now_ms = ctx.broker.clock.now_ms()
    expire_timestamp_ms = -1 if request.retention_time_ms == -1 else now_ms + request.retention_time_ms
    offsets = {
        (topic.name, partition.partition_index): OffsetAndMetadata(
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
            now_ms if partition.commit_timestamp == -1 else partition.commit_timestamp,
            expire_timestamp_ms,
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    if not offsets:
        return OffsetCommitResponse()
    commit = Commit(
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=offsets,
    )
    order = list(offsets)
    ctx.broker.groups.commit_offsets(
        request.group_id, commit, lambda errors: ctx.respond(_response({key: errors[key] for key in order}))
    )
    return PENDING


async def _commit_to_store(ctx: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    offsets = ctx.broker.store_offsets
    errors: PartitionErrors = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            errors[topic.name, wanted.partition_index] = await offsets.commit(
                request.group_id,
                topic.name,
                wanted.partition_index,
                wanted.committed_offset,
                wanted.committed_metadata,
            )
    return _response(errors)


def _response(errors: PartitionErrors) -> OffsetCommitResponse:
    topics: dict[str, OffsetCommitResponseTopic] = {}
    for (topic, partition), error in errors.items():
        topics.setdefault(topic, OffsetCommitResponseTopic(name=topic)).partitions.append(
            OffsetCommitResponsePartition(partition_index=partition, error_code=error)
        )
    return OffsetCommitResponse(topics=list(topics.values()))
