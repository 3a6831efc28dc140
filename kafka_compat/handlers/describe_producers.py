"""DescribeProducers (API key 61): the active producers of partitions, with their open transactions (KIP-664).

Followers respond, too, because tools inspect the state of a specific broker.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied, refusal
from kafka_compat.long_work import Steps
from kafka_compat.metadata.topic_names import check_topic_name
from kafka_compat.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 0)
def describe_producers(
    ctx: RequestContext, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    response = DescribeProducersResponse()
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    for topic in request.topics:
        described = TopicResponse(name=topic.name)
        response.topics.append(described)
        error = _refusal(ctx, topic.name, denied)
        for index in topic.partition_indexes:
            if error is None:
                partition = _describe(ctx, topic.name, index)
            else:
                partition = PartitionResponse(
                    partition_index=index, error_code=error.code, error_message=error.message
                )
            described.partitions.append(partition)
            yield None
    return response


def _refusal(ctx: RequestContext, topic: str, denied: Denied) -> KafkaError | None:
    """Return the error for all partitions of a topic, or None if the topic may be described."""
    try:
        check_topic_name(topic)
    except KafkaError as error:
        return error
    if topic in denied:
        return refusal(ResourceType.TOPIC)
    if topic not in ctx.services.metadata.topics:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return KafkaError(code, STANDARD_MESSAGES[code])
    return None


def _describe(ctx: RequestContext, topic: str, index: int) -> PartitionResponse:
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
