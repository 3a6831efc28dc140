"""OffsetDelete (key 47, KIP-496): forget a group's positions in topics that none of its members subscribes
to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.model import PartitionErrors
from kafka_compat.long_work import Steps
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_compat.protocol.pending import PENDING

if TYPE_CHECKING:
    from kafka_compat.handlers.services import HasGroups


@handler(ApiKey.OFFSET_DELETE, 0, 0)
def offset_delete(ctx: RequestContext[HasGroups], request: OffsetDeleteRequest) -> object:
    wanted = [(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions]
    ctx.services.groups.delete_offsets(
        request.group_id, wanted, lambda result: ctx.long_work.start(_response(result), ctx.respond)
    )
    return PENDING


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
