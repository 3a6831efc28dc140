"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups (KIP-932). Version 1 adds the lag
(KIP-1226).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.share.progress import Place, end_errors, has_lag, progress, read_summaries
from kafka_compat.handlers.authorization import Denied, allows
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.long_work import Turn, batched
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from uuid import UUID

_LATEST: Final = -1
_GROUP_DENIED: Final = "Group authorization failed."
_TOPIC_DENIED: Final = "Topic authorization failed."

Topics = list[DescribeShareGroupOffsetsResponseTopic]


@handler(0, 1)
async def describe_share_group_offsets(
    ctx: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    require_level(ctx, SHARE_VERSION)
    turn = await ctx.long_work.begin()
    groups = []
    for group in request.groups:
        groups.append(await _describe(ctx, group, turn))
        await turn.pause_if_due()
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe(
    ctx: RequestContext, group: DescribeShareGroupOffsetsRequestGroup, turn: Turn
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = group.group_id
    response = DescribeShareGroupOffsetsResponseGroup(group_id=group_id)
    if not allows(ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        response.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        response.error_message = _GROUP_DENIED
        return response
    error, initialized = ctx.services.groups.share.initialized_partitions(group_id)
    if error:
        response.error_code = error
        return response
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    metadata = ctx.services.metadata
    wanted: dict[UUID, tuple[str, Sequence[int]]] = {}
    refused: Topics = []
    if group.topics is None:
        for topic_id, partitions in initialized.items():
            name = metadata.topic_name(topic_id)
            if name is not None and name not in denied:
                wanted[topic_id] = (name, sorted(partitions))
    for topic in group.topics or ():
        await turn.pause_if_due()
        known = metadata.topics.get(topic.topic_name)
        if topic.topic_name in denied:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(await _refused(topic.topic_name, topic.partitions, code, _TOPIC_DENIED, turn))
        elif known is None:
            refused.append(await _refused(topic.topic_name, topic.partitions, ErrorCode.NONE, None, turn))
        else:
            wanted[known.topic_id] = (topic.topic_name, list(dict.fromkeys(topic.partitions)))
    response.topics = [*(await _progress(ctx, group_id, wanted, turn)), *refused]
    return response


async def _refused(
    name: str, partitions: Sequence[int], error: ErrorCode, message: str | None, turn: Turn
) -> DescribeShareGroupOffsetsResponseTopic:
    refused = DescribeShareGroupOffsetsResponseTopic(topic_name=name)
    for some in batched(partitions):
        refused.partitions += [
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=each, start_offset=-1, error_code=error, error_message=message
            )
            for each in some
        ]
        await turn.pause_if_due()
    return refused


async def _progress(
    ctx: RequestContext, group_id: str, wanted: "dict[UUID, tuple[str, Sequence[int]]]", turn: Turn
) -> Topics:
    """Return the start offsets and the lags of share-partitions."""
    keys = [(topic_id, each) for topic_id, (_, partitions) in wanted.items() for each in partitions]
    summaries = await read_summaries(ctx.services.groups.share.persister, group_id, keys, turn.pause_if_due)
    places = [
        (wanted[topic_id][0], partition)
        for (topic_id, partition), found in summaries.items()
        if has_lag(*found)
    ]
    await turn.pause_if_due()
    ends = end_errors(places, await _end_offsets(ctx, places, turn))
    topics: Topics = []
    for topic_id, (name, partitions) in wanted.items():
        described = DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
        for partition in partitions:
            await turn.pause_if_due()
            found = progress(*summaries[topic_id, partition], ends.get((name, partition)))
            described.partitions.append(
                DescribeShareGroupOffsetsResponsePartition(
                    partition_index=partition,
                    start_offset=found.start_offset,
                    leader_epoch=found.leader_epoch,
                    lag=found.lag,
                    error_code=found.error,
                    error_message=readable(KafkaError(found.error).message) if found.error else None,
                )
            )
        topics.append(described)
    return topics


async def _end_offsets(ctx: RequestContext, places: Sequence[Place], turn: Turn) -> dict[Place, int]:
    """Return the end offsets of partitions, as far as their leaders respond."""
    services = ctx.services
    ends: dict[Place, int] = {}
    elsewhere: dict[int, dict[Place, int]] = {}
    for place in places:
        await turn.pause_if_due()
        partition = services.replicas.get(*place)
        if partition is not None and partition.is_leader:
            try:
                ends[place] = partition.high_watermark
            except (StorageError, KafkaError):
                continue
            continue
        known = services.metadata.partition(*place)
        if known is not None:
            elsewhere.setdefault(known.leader, {})[place] = known.leader_epoch
    remote = services.membership.remote_partitions()
    for leader_id, epochs in elsewhere.items():
        if remote is None or leader_id < 0:
            continue
        try:
            ends |= await remote.offsets_at(leader_id, epochs, _LATEST)
        except (ConnectionError, MalformedRequest):
            continue
    return ends
