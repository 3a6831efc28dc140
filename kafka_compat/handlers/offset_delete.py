"""OffsetDelete (API key 47, KIP-496): delete a group's offsets for topics to which no member subscribes."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import PartitionErrors, TopicPartition
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.long_work import Steps, gathered
from kafka_compat.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 0)
def offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> Steps[Deferred]:
    require(ctx, Operation.DELETE, ResourceType.GROUP, request.group_id)
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    refused: PartitionErrors = {}
    wanted: list[TopicPartition] = []
    for topic in request.topics:
        keys = yield from gathered((topic.name, one.partition_index) for one in topic.partitions)
        if topic.name in denied:
            refused |= dict.fromkeys(keys, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            wanted += keys

    def respond(result: PartitionErrors | ErrorCode) -> None:
        whole = result if isinstance(result, ErrorCode) else refused | result
        ctx.long_work.start(_response(whole), deferred.complete)

    deferred = Deferred()
    yield from ctx.services.groups.offsets.delete(request.group_id, wanted, respond)
    return deferred


def _response(result: PartitionErrors | ErrorCode) -> Steps[OffsetDeleteResponse]:
    if isinstance(result, ErrorCode):
        return OffsetDeleteResponse(error_code=result)
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (topic, partition), error in result.items():
        yield None
        topics.setdefault(topic, OffsetDeleteResponseTopic(name=topic)).partitions.append(
            OffsetDeleteResponsePartition(partition_index=partition, error_code=error)
        )
    return OffsetDeleteResponse(topics=list(topics.values()))
