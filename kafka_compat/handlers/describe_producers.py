"""DescribeProducers (key 61): the producers that partitions know, with their open transactions (KIP-664).

A follower answers as well as the leader: tools ask a broker for what it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.long_work import Steps
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from kafka_compat.handlers.services import HasReplicas


@handler(ApiKey.DESCRIBE_PRODUCERS, 0, 0)
def describe_producers(
    ctx: RequestContext[HasReplicas], request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    response = DescribeProducersResponse()
    for topic in request.topics:
        described = TopicResponse(name=topic.name)
        response.topics.append(described)
        for index in topic.partition_indexes:
            described.partitions.append(_describe(ctx, topic.name, index))
            yield None
    return response


def _describe(ctx: RequestContext[HasReplicas], topic: str, index: int) -> PartitionResponse:
    held = ctx.services.replicas.get(topic, index)
    if held is None:
        return PartitionResponse(
            partition_index=index, error_code=ctx.services.replicas.missing(topic, index)
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for entry in held.log.producers.entries.values()
        ],
    )
