"""DescribeTopicPartitions (API key 75): return topics and partitions in pages, ordered by name (KIP-966)."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied, allowed_operations
from kafka_compat.long_work import Steps
from kafka_compat.metadata.cache import NO_LEADER, MetadataCache, PartitionMetadata
from kafka_compat.metadata.topic_names import check_topic_name, is_internal
from kafka_compat.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 0)
def describe_topic_partitions(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    cache = ctx.services.metadata
    cursor = request.cursor
    names = sorted({topic.name for topic in request.topics}) if request.topics else sorted(cache.topics)
    if cursor is not None and request.topics and cursor.topic_name not in names:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=ErrorCode.INVALID_REQUEST)
                for topic in request.topics
            ]
        )
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    partitions_max = ctx.services.config.int("max.request.partition.size.limit")
    left = max(min(request.response_partition_limit, partitions_max), 1)
    response = DescribeTopicPartitionsResponse()
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    refused: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        yield None
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        if name in denied:
            if request.topics:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                refused.append(DescribeTopicPartitionsResponseTopic(name=name, error_code=code))
            continue
        known = cache.topics.get(name)
        if known is None:
            response.topics.append(_unknown(ctx, name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        chosen = known.partitions[first : first + left]
        left -= len(chosen)
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=known.topic_id,
                is_internal=known.is_internal,
                partitions=[_partition(cache, partition) for partition in chosen],
                topic_authorized_operations=allowed_operations(ctx, ResourceType.TOPIC, name),
            )
        )
        if first + len(chosen) < len(known.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(chosen))
            break
    response.topics += refused
    return response


def _partition(
    cache: MetadataCache, partition: PartitionMetadata
) -> DescribeTopicPartitionsResponsePartition:
    leader = cache.reachable_leader(partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader is None else ErrorCode.NONE,
        partition_index=partition.partition,
        leader_id=NO_LEADER if leader is None else leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        # Send an empty list: the message definition allows null, but Java clients fail on it.
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=cache.offline_replicas(partition),
    )


def _unknown(ctx: RequestContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=allowed_operations(ctx, ResourceType.TOPIC, name),
    )
