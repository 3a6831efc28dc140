"""OffsetFetch (API key 9): return the committed offsets of groups.

Version 2 can request all partitions, and adds an error code for the group. Versions 5, 7 and 8 add leader
epochs (KIP-320), `require_stable` (KIP-447) and several groups at once (KIP-709), respectively. In version 9
and later, a member of a consumer group may send its epoch, which must be the current one (KIP-848). Version
10 identifies topics by ID. A missing offset is returned as -1 without an error. Version 0 has no coordinator:
every broker responds from the metadata store, with UNKNOWN_TOPIC_OR_PARTITION for a missing offset.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied, allows, require
from kafka_compat.long_work import Steps, batched, gathered
from kafka_compat.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.groups.offset_requests import FetchedOffsets
    from kafka_compat.groups.requests import TopicPartition

T = TypeVar("T", OffsetFetchResponseTopic, OffsetFetchResponseTopics)

_FIRST_VERSION_WITH_IDS: Final = 10
_PARTITIONS_AT_ONCE = 256
_DENIED = (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class _Asked(NamedTuple):
    """A group whose offsets are requested, by one of its members unless the member ID is None."""

    group_id: str
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1


@handler(0, 10)
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
    wanted: list[TopicPartition] | None = None
    if request.topics is not None:
        wanted = yield from gathered(
            (topic.name, index) for topic in request.topics for index in topic.partition_indexes
        )
    asked = _Asked(request.group_id, request.require_stable)
    error, topics = yield from _topics(ctx, asked, wanted, {}, *one_group)
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
    ctx: RequestContext, asked: _Asked, wanted: list[TopicPartition] | None
) -> Steps[tuple[ErrorCode, FetchedOffsets]]:
    """Return the error code of a group, and its offsets for `wanted` or, if None, for all visible topics."""

    def fetch(partitions: list[TopicPartition] | None) -> tuple[ErrorCode, FetchedOffsets]:
        return ctx.services.groups.offsets.fetch(
            asked.group_id,
            partitions,
            require_stable=asked.require_stable,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
        )

    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC, logged=wanted is not None)
    fetched: FetchedOffsets = {}
    if not wanted:
        error, found = fetch(wanted)
        for some in batched(found.items()):
            fetched |= {key: value for key, value in some if key[0] not in denied}
            yield None
        return error, fetched
    error = ErrorCode.NONE
    for wished in batched(wanted, _PARTITIONS_AT_ONCE):
        error, found = fetch([key for key in wished if key[0] not in denied])
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
    asked = _Asked(group.group_id, require_stable, group.member_id, group.member_epoch)
    of_group = OffsetFetchResponseTopics, OffsetFetchResponsePartitions
    is_by_id = ctx.api_version >= _FIRST_VERSION_WITH_IDS
    metadata = ctx.services.metadata
    wanted: list[TopicPartition] | None = None
    ids: dict[str, UUID] = {}
    unknown: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        named: list[tuple[str, list[int]]] = []
        for asked_topic in group.topics:
            name = metadata.topic_name(asked_topic.topic_id) if is_by_id else asked_topic.name
            if name is None:
                unknown.append((yield from _unknown_topic(asked_topic)))
                continue
            named.append((name, asked_topic.partition_indexes))
            if is_by_id:
                ids[name] = asked_topic.topic_id
        wanted = yield from gathered((name, index) for name, indexes in named for index in indexes)
    error, topics = yield from _topics(ctx, asked, wanted, ids, *of_group)
    if is_by_id and not error:
        # Without its ID, the response cannot contain a topic that has been deleted.
        topics = [topic for topic in topics if topic.name in metadata.topics]
        for topic in topics:
            topic.topic_id = ids.get(topic.name) or metadata.topics[topic.name].topic_id
        topics += unknown
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=topics)


def _unknown_topic(topic: OffsetFetchRequestTopics) -> Steps[OffsetFetchResponseTopics]:
    error = ErrorCode.UNKNOWN_TOPIC_ID
    yield None
    partitions = yield from gathered(
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=error)
        for index in topic.partition_indexes
    )
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions)


def _topics(
    ctx: RequestContext,
    asked: _Asked,
    wanted: list[TopicPartition] | None,
    ids: Mapping[str, UUID],
    topic_type: type[T],
    partition_type: type[Any],
) -> Steps[tuple[ErrorCode, list[T]]]:
    """Return the error code of a group, and its offsets in the response types of the request's version. An
    offset that was stored under a topic ID other than that in `ids` is missing.
    """
    error, fetched = yield from _committed(ctx, asked, wanted)
    if ctx.api_version < 2 and error:
        fetched = {partition: (None, error) for partition in wanted or ()}
    topics: dict[str, T] = {}
    for (topic, partition), (offset, partition_error) in fetched.items():
        yield None
        if offset is not None and topic in ids and offset.topic_id not in (None, ids[topic]):
            offset = None
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
