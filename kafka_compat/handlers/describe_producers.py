"""DescribeProducers (key 61): the producers that partitions know, with their open transactions (KIP-664).

A follower answers as well as the leader: tools ask a broker for what it holds.
"""

from __future__ import annotations

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@handler(ApiKey.DESCRIBE_PRODUCERS)
def describe_producers(ctx: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(ctx, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(ctx: RequestContext, topic: str, index: int) -> PartitionResponse:
    held = ctx.broker.replicas.get(topic, index)
    if held is None:
        return PartitionResponse(partition_index=index, error_code=ctx.broker.replicas.missing(topic, index))
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
