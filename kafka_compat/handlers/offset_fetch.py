"""OffsetFetch (API key 9): return the committed offsets of groups.

Version 2 can request all partitions, and adds an error code for the group. Versions 5, 7 and 8 add leader
epochs (KIP-320), `require_stable` (KIP-447) and several groups at once (KIP-709), respectively. A missing
offset is returned as -1 without an error. Version 0 has no coordinator: every broker responds from the
metadata store, with UNKNOWN_TOPIC_OR_PARTITION for a missing offset.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied, allows, require
from kafka_compat.long_work import Steps, batched, gathered
from kafka_compat.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import FetchedOffsets
    from kafka_compat.groups.requests import TopicPartition

T = TypeVar("T", OffsetFetchResponseTopic, OffsetFetchResponseTopics)

_PARTITIONS_AT_ONCE = 256
_DENIED = (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@handler(0, 9)
def offset_fetch(
    ctx: RequestContext, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse] | Coroutine[Any, Any, OffsetFetchResponse]:
    if ctx.api_version < 8:
        require(ctx, Operation.DESCRIBE, ResourceType.GROUP, request.group_id)
    return _fetch_from_store(ctx, request) if ctx.api_version == 0 else _fetch(ctx, request)


def _fetch(ctx: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    if ctx.api_version >= 8:
        groups = []
        for group in request.groups:
            groups.append((yield from _group(ctx, group, require_stable=request.require_stable)))
            yield None
        return OffsetFetchResponse(groups=groups)
    one_group = OffsetFetchResponseTopic, OffsetFetchResponsePartition
    error, topics = yield from _topics(ctx, request, request.require_stable, *one_group)
    return OffsetFetchResponse(error_code=error, topics=topics)


async def _fetch_from_store(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    offsets = ctx.services.zookeeper_offsets
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    topics = []
    for topic in request.topics or ():
        partitions = []
        for index in topic.partition_indexes:
            if topic.name in denied:
                offset, error = -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            else:
                offset, error = await offsets.fetch(request.group_id, topic.name, index)
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=offset, metadata="", error_code=error
                )
            )
        if partitions:
            topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return OffsetFetchResponse(topics=topics)


def _committed(
    ctx: RequestContext, group_id: str, wanted: list[TopicPartition] | None, require_stable: bool
) -> Steps[tuple[ErrorCode, FetchedOffsets]]:
    """Return the error code of a group, and its offsets for `wanted` or, if None, for all visible topics."""
    groups = ctx.services.groups
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC, logged=wanted is not None)
    fetched: FetchedOffsets = {}
    if wanted is None:
        error, found = groups.fetch_offsets(group_id, None, require_stable=require_stable)
        for some in batched(found.items()):
            fetched |= {key: value for key, value in some if key[0] not in denied}
            yield None
        return error, fetched
    error = ErrorCode.NONE
    for wished in batched(wanted, _PARTITIONS_AT_ONCE):
        allowed = [key for key in wished if key[0] not in denied]
        error, found = groups.fetch_offsets(group_id, allowed, require_stable=require_stable)
        if error:
            return error, {}
        fetched |= {key: found.get(key, _DENIED) for key in wished}
        yield None
    return error, fetched


def _group(
    ctx: RequestContext, group: OffsetFetchRequestGroup, *, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    if not allows(ctx, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    of_group = OffsetFetchResponseTopics, OffsetFetchResponsePartitions
    error, topics = yield from _topics(ctx, group, require_stable, *of_group)
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=topics)


def _topics(
    ctx: RequestContext,
    group: OffsetFetchRequest | OffsetFetchRequestGroup,
    require_stable: bool,
    topic_type: type[T],
    partition_type: type[Any],
) -> Steps[tuple[ErrorCode, list[T]]]:
    """Return the error code of a group, and its offsets in the response types of the request's version."""
    wanted: list[TopicPartition] | None = None
    if group.topics is not None:
        wanted = yield from gathered(
            (topic.name, index) for topic in group.topics for index in topic.partition_indexes
        )
    error, fetched = yield from _committed(ctx, group.group_id, wanted, require_stable)
    if ctx.api_version < 2 and error:
        fetched = {partition: (None, error) for partition in wanted or ()}
    topics: dict[str, T] = {}
    for (topic, partition), (offset, partition_error) in fetched.items():
        yield None
        topics.setdefault(topic, topic_type(name=topic)).partitions.append(
            partition_type(
                partition_index=partition,
                committed_offset=-1 if offset is None else offset.offset,
                committed_leader_epoch=-1 if offset is None else offset.leader_epoch,
                metadata="" if offset is None else offset.metadata,
                error_code=partition_error,
            )
        )
    return error, list(topics.values())
