"""Metadata (key 3): brokers, the controller, and topics by name or id, creating those that may be created on
first use.

Versions: 0 takes an empty list as all topics, later ones null; 4 lets the client forbid creation; 8 to 10
tell authorized operations; 10 brings topic ids, 12 look-up by id. The addresses told are those of the
listener that the client came by.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata_cache import NO_LEADER, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_compat.topic_names import check_topic_name, is_internal

OPERATIONS_NOT_ASKED = -(2**31)
# Bits by Kafka's AclOperation codes. Without an authorizer everyone may do everything.
TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
_NO_TOPIC_ID = UUID(int=0)


Answer = MetadataResponse | Coroutine[Any, Any, MetadataResponse]


@handler(ApiKey.METADATA)
def metadata(ctx: RequestContext, request: MetadataRequest) -> Answer:
    return _answer(ctx, request) if ctx.broker.metadata.brokers else _once_known(ctx, request)


async def _once_known(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """This broker has just started, and no controller has told it of the cluster. The answer waits:
    librdkafka 2.16 forgets every broker, and its coordinators, when it is told of none.
    """
    await ctx.broker.await_metadata()
    answer = _answer(ctx, request)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _answer(ctx: RequestContext, request: MetadataRequest) -> Answer:
    cache = ctx.broker.metadata
    wanted = request.topics
    if wanted is None or (ctx.api_version == 0 and not wanted):
        return _response(ctx, request, [_topic(ctx, request, topic) for topic in cache.topics.values()])
    may_create = request.allow_auto_topic_creation or ctx.api_version < 4
    answers: list[MetadataResponseTopic] = []
    missing: list[str] = []
    for item in wanted:
        if item.topic_id != _NO_TOPIC_ID:
            name = cache.topic_name(item.topic_id)
            if name is None:
                answers.append(_unknown(None, item.topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
        else:
            name = item.name or ""
        known = cache.topics.get(name)
        if known is not None:
            answers.append(_topic(ctx, request, known))
        elif may_create and ctx.broker.auto_create_topics:
            missing.append(name)
        else:
            answers.append(_missing(name))
    if missing:
        return _create(ctx, request, missing, answers)
    return _response(ctx, request, answers)


async def _create(
    ctx: RequestContext, request: MetadataRequest, names: list[str], answers: list[MetadataResponseTopic]
) -> MetadataResponse:
    for name in dict.fromkeys(names):
        try:
            check_topic_name(name)
            topic = await (
                ctx.broker.topics.ensure_internal(name)
                if is_internal(name)
                else ctx.broker.topics.auto_create(name)
            )
            answers.append(_topic(ctx, request, topic))
        except KafkaError as error:
            answers.append(_unknown(name, _NO_TOPIC_ID, error.code))
    return _response(ctx, request, answers)


def _missing(name: str) -> MetadataResponseTopic:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return _unknown(name, _NO_TOPIC_ID, error.code)
    return _unknown(name, _NO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _unknown(name: str | None, topic_id: UUID, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        topic_authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _topic(ctx: RequestContext, request: MetadataRequest, topic: TopicMetadata) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(ctx.broker.metadata, partition) for partition in topic.partitions],
        topic_authorized_operations=(
            TOPIC_OPERATIONS if request.include_topic_authorized_operations else OPERATIONS_NOT_ASKED
        ),
    )


def _partition(cache: MetadataCache, partition: PartitionMetadata) -> MetadataResponsePartition:
    leader = cache.reachable_leader(partition)
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader is None else ErrorCode.NONE,
        partition_index=partition.partition,
        # Not one that the brokers of this response leave out: kafka-python never recovers from that.
        leader_id=NO_LEADER if leader is None else leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=cache.offline_replicas(partition),
    )


def _response(
    ctx: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    cache = ctx.broker.metadata
    brokers = []
    for broker in cache.brokers.values():
        host, port = ctx.broker.address_for(broker, ctx.connection)
        brokers.append(
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
        )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=cache.cluster_id,
        controller_id=cache.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else OPERATIONS_NOT_ASKED
        ),
    )
