"""OffsetFetch (key 9): the positions of a group.

Version 2 can ask for all partitions and has an error for the group as a whole, 5 brings leader epochs
(KIP-320), 7 `require_stable` (KIP-447), 8 several groups at once (KIP-709). Without an offset the answer is
-1 and no error. Version 0 knows no coordinator: any broker answers from the metadata store, and says
UNKNOWN_TOPIC_OR_PARTITION where it has no offset.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kafka_compat.dispatch import RequestContext, handler
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


@handler(ApiKey.OFFSET_FETCH)
def offset_fetch(
    ctx: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    if ctx.api_version == 0:
        return _fetch_from_store(ctx, request)
    if ctx.api_version >= 8:
        return OffsetFetchResponse(
            groups=[_group(ctx, group, require_stable=request.require_stable) for group in request.groups]
        )
    wanted: list[TopicPartition] | None = None
    if request.topics is not None:
        wanted = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    error, fetched = ctx.broker.groups.fetch_offsets(
        request.group_id, wanted, require_stable=request.require_stable
    )
    if ctx.api_version < 2 and error:
        fetched = {partition: (None, error) for partition in wanted or ()}
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for (topic, partition), (offset, partition_error) in fetched.items():
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


async def _fetch_from_store(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    offsets = ctx.broker.store_offsets
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


def _group(
    ctx: RequestContext, group: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    wanted: list[TopicPartition] | None = None
    if group.topics is not None:
        wanted = [(topic.name, index) for topic in group.topics for index in topic.partition_indexes]
    error, fetched = ctx.broker.groups.fetch_offsets(group.group_id, wanted, require_stable=require_stable)
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=_topics(fetched))


def _topics(fetched: FetchedOffsets) -> list[OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (topic, partition), (offset, error) in fetched.items():
        topics.setdefault(topic, OffsetFetchResponseTopics(name=topic)).partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=-1 if offset is None else offset.offset,
                committed_leader_epoch=-1 if offset is None else offset.leader_epoch,
                metadata="" if offset is None else offset.metadata,
                error_code=error,
            )
        )
    return list(topics.values())
