"""OffsetDelete (key 47, KIP-496): forget a group's positions in topics that none of its members subscribes
to.
"""

from __future__ import annotations

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.model import PartitionErrors
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@handler(ApiKey.OFFSET_DELETE)
def offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> object:
    wanted = [(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions]
    ctx.broker.groups.delete_offsets(request.group_id, wanted, lambda result: ctx.respond(_response(result)))
    return PENDING


def _response(result: PartitionErrors | ErrorCode) -> OffsetDeleteResponse:
    if isinstance(result, ErrorCode):
        return OffsetDeleteResponse(error_code=result)
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (topic, partition), error in result.items():
        topics.setdefault(topic, OffsetDeleteResponseTopic(name=topic)).partitions.append(
            OffsetDeleteResponsePartition(partition_index=partition, error_code=error)
        )
    return OffsetDeleteResponse(topics=list(topics.values()))
