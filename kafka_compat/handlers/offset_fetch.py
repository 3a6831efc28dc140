"""OffsetFetch (key 9): the positions of a group.

Version 2 can ask for all partitions and has an error for the group as a whole, 5 brings leader epochs
(KIP-320), 7 `require_stable` (KIP-447), 8 several groups at once (KIP-709). Without an offset the answer is
-1 and no error. Version 0 knows no coordinator: any broker answers from the metadata store, and says
UNKNOWN_TOPIC_OR_PARTITION where it has no offset.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps, gathered
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
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

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import FetchedOffsets
    from kafka_compat.groups.model import TopicPartition
    from kafka_compat.handlers.services import HasGroups, HasZooKeeperOffsets

    class _Services(HasGroups, HasZooKeeperOffsets, Protocol):
        """What is used here."""


_PARTITIONS_AT_ONCE = 256


@handler(ApiKey.OFFSET_FETCH, 0, 9)
def offset_fetch(
    ctx: RequestContext[_Services], request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse] | Coroutine[Any, Any, OffsetFetchResponse]:
    return _fetch_from_store(ctx, request) if ctx.api_version == 0 else _fetch(ctx, request)


def _fetch(ctx: RequestContext[_Services], request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    if ctx.api_version >= 8:
        groups = []
        for group in request.groups:
            groups.append((yield from _group(ctx, group, require_stable=request.require_stable)))
            yield None
        return OffsetFetchResponse(groups=groups)
    wanted: list[TopicPartition] | None = None
    if request.topics is not None:
        wanted = yield from gathered(
            (topic.name, index) for topic in request.topics for index in topic.partition_indexes
        )
    error, fetched = yield from _committed(ctx, request.group_id, wanted, request.require_stable)
    if ctx.api_version < 2 and error:
        fetched = {partition: (None, error) for partition in wanted or ()}
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for (topic, partition), (offset, partition_error) in fetched.items():
        yield None
        topics.setdefault(topic, OffsetFetchResponseTopic(name=topic)).partitions.append(
            OffsetFetchResponsePartition(
                partition_index=partition,
                committed_offset=-1 if offset is None else offset.offset,
                committed_leader_epoch=-1 if offset is None else offset.leader_epoch,
                metadata="" if offset is None else offset.metadata,
                error_code=partition_error,
            )
        )
    return OffsetFetchResponse(error_code=error, topics=list(topics.values()))


async def _fetch_from_store(
    ctx: RequestContext[_Services], request: OffsetFetchRequest
) -> OffsetFetchResponse:
    offsets = ctx.services.zookeeper_offsets
    topics = []
    for topic in request.topics or ():
        partitions = []
        for index in topic.partition_indexes:
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
    ctx: RequestContext[_Services], group_id: str, wanted: list[TopicPartition] | None, require_stable: bool
) -> Steps[tuple[ErrorCode, FetchedOffsets]]:
    """What the group has of the partitions that are wanted (None: of all)."""
    groups = ctx.services.groups
    if wanted is None or len(wanted) <= _PARTITIONS_AT_ONCE:
        return groups.fetch_offsets(group_id, wanted, require_stable=require_stable)
    fetched: FetchedOffsets = {}
    for first in range(0, len(wanted), _PARTITIONS_AT_ONCE):
        some = wanted[first : first + _PARTITIONS_AT_ONCE]
        error, found = groups.fetch_offsets(group_id, some, require_stable=require_stable)
        if error:
            return error, {}
        fetched |= found
        yield None
    return ErrorCode.NONE, fetched


def _group(
    ctx: RequestContext[_Services], group: OffsetFetchRequestGroup, *, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    wanted: list[TopicPartition] | None = None
    if group.topics is not None:
        wanted = yield from gathered(
            (topic.name, index) for topic in group.topics for index in topic.partition_indexes
        )
    error, fetched = yield from _committed(ctx, group.group_id, wanted, require_stable)
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (topic, partition), (offset, partition_error) in fetched.items():
        yield None
        topics.setdefault(topic, OffsetFetchResponseTopics(name=topic)).partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=-1 if offset is None else offset.offset,
                committed_leader_epoch=-1 if offset is None else offset.leader_epoch,
                metadata="" if offset is None else offset.metadata,
                error_code=partition_error,
            )
        )
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=list(topics.values()))
