"""AlterShareGroupOffsets (API key 91): set the start offsets of a share group without members (KIP-932)."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.share.offset_changes import MESSAGES, AlteredTopic, NewOffsets, OffsetsResult
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 0)
def alter_share_group_offsets(
    ctx: RequestContext, request: AlterShareGroupOffsetsRequest
) -> Steps[AlterShareGroupOffsetsResponse | Deferred]:
    require_level(ctx, SHARE_VERSION)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    topics: list[NewOffsets] = []
    refused: list[AlterShareGroupOffsetsResponseTopic] = []
    for topic in request.topics:
        yield None
        if topic.topic_name in denied:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    partitions=[_partition(each.partition_index, error) for each in topic.partitions],
                )
            )
        else:
            offsets: list[tuple[int, int]] = []
            for some in batched(topic.partitions):
                offsets += [(each.partition_index, each.start_offset) for each in some]
                yield None
            topics.append(NewOffsets(topic.topic_name, offsets))
    if request.topics and not topics:
        return AlterShareGroupOffsetsResponse(responses=refused)
    deferred = Deferred()
    ctx.services.groups.share.alter_offsets(
        request.group_id,
        topics,
        lambda result: ctx.long_work.start(_response(result, refused), deferred.complete),
    )
    return deferred


def _partition(partition: int, error: ErrorCode) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=partition, error_code=error, error_message=MESSAGES.get(error)
    )


def _response(
    result: OffsetsResult, refused: list[AlterShareGroupOffsetsResponseTopic]
) -> Steps[AlterShareGroupOffsetsResponse]:
    responses = refused
    for topic in result.topics:
        yield None
        if isinstance(topic, AlteredTopic):
            partitions: list[AlterShareGroupOffsetsResponsePartition] = []
            for some in batched(topic.partitions):
                partitions += [_partition(*each) for each in some]
                yield None
            responses.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
    return AlterShareGroupOffsetsResponse(
        error_code=result.error,
        error_message=readable(result.message or MESSAGES.get(result.error)),
        responses=responses,
    )
