"""CreateTopics (API key 19): create topics. Each topic succeeds or fails individually. Version 5 returns the
effective settings, version 6 reports an exceeded quota for created partitions (KIP-599), and version 7
returns the topic ID.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied, cluster_allows
from kafka_compat.long_work import batched
from kafka_compat.metadata.config_manager import tell_of_no_effect
from kafka_compat.metadata.topic_rules import Charge
from kafka_compat.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.security.authorizer import Operation, ResourceType

_OF_KRAFT = "__cluster_metadata"
PARTITIONS_PER_REQUEST_MAX = 10_000
"""Limit on the partitions created by one request, as in KRaft, so that it cannot block other requests."""
_STRICT_SINCE = 6
TOPICS_AT_ONCE = 64
"""Maximum number of topics in one request that are created or deleted in parallel."""


@handler(0, 7)
async def create_topics(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    asked = 0
    for some in batched(request.topics):
        asked += sum(max(topic.num_partitions, len(topic.assignments), 1) for topic in some)
        if asked > PARTITIONS_PER_REQUEST_MAX:
            return await _refused(ctx, request.topics)
    counts = Counter(topic.name for topic in request.topics)
    may_all = cluster_allows(ctx, Operation.CREATE, logged=False)
    denied = Denied(ctx, Operation.CREATE, ResourceType.TOPIC)
    hidden = Denied(ctx, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, logged=False)
    quotas = ctx.services.quotas
    mutation = None if quotas is None else quotas.mutation(ctx, _STRICT_SINCE)
    charge = None if mutation is None else mutation.charge

    async def created(topic: CreatableTopic) -> CreatableTopicResult:
        if counts[topic.name] > 1:
            problem = "Found multiple entries for this topic."
            return _without_configs(_failure(topic, ErrorCode.INVALID_REQUEST, problem), hidden)
        if topic.name == _OF_KRAFT:
            problem = f"Creation of internal topic {_OF_KRAFT} is prohibited."
            return _failure(topic, ErrorCode.INVALID_REQUEST, problem)
        if not may_all and topic.name in denied:
            refused = _failure(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            return _without_configs(refused, hidden)
        try:
            return _without_configs(await _create(ctx, topic, request, charge), hidden)
        except Exception as error:
            failure = as_kafka_error(error, f"CreateTopics for topic {topic.name!r}")
            return _failure(topic, failure.code, failure.message or None)

    response = CreateTopicsResponse()
    turn = await ctx.long_work.begin()
    for first in range(0, len(request.topics), TOPICS_AT_ONCE):
        # Create several topics concurrently: a cluster's controller then processes them as one batch.
        response.topics += await asyncio.gather(*map(created, request.topics[first : first + TOPICS_AT_ONCE]))
        await turn.pause_if_due()
    if mutation is not None:
        response.throttle_time_ms = mutation.throttle_time_ms
    return response


def _without_configs(result: CreatableTopicResult, hidden: Denied) -> CreatableTopicResult:
    """Remove settings and defaults from a result if the client may not see them."""
    if result.name in hidden:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.topic_id = ZERO_UUID
        result.num_partitions = result.replication_factor = -1
        result.configs = []
    return result


async def _refused(ctx: RequestContext, topics: Sequence[CreatableTopic]) -> CreateTopicsResponse:
    problem = "Excessively large number of partitions per request."
    refused = CreateTopicsResponse()
    turn = await ctx.long_work.begin()
    for topic in topics:
        refused.topics.append(_failure(topic, ErrorCode.POLICY_VIOLATION, problem))
        await turn.pause_if_due()
    return refused


async def _create(
    ctx: RequestContext, topic: CreatableTopic, request: CreateTopicsRequest, charge: Charge | None
) -> CreatableTopicResult:
    if topic.name in ctx.services.metadata.topics:
        # Check this before any other error, as in Kafka: kafkajs sends partition counts of -1 to detect
        # existing topics.
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    assignments = {item.partition_index: tuple(item.broker_ids) for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once.")
    if assignments and (topic.num_partitions != -1 or topic.replication_factor != -1):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}"
            )
        configs[config.name] = config.value
    created = await ctx.services.topics.create(
        topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments or None,
        configs=configs,
        validate_only=request.validate_only,
        timeout_ms=request.timeout_ms,
        charge=charge,
    )
    if not request.validate_only:
        tell_of_no_effect(topic.name, configs)
    result = CreatableTopicResult(
        name=topic.name,
        error_message=None,
        topic_id=created.topic_id,
        num_partitions=len(created.partitions),
        replication_factor=len(created.partitions[0].replicas),
    )
    if ctx.api_version >= 5:
        result.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in ctx.services.configs.topic_entries(configs)
        ]
    return result


def _failure(topic: CreatableTopic, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name, error_code=code, error_message=message, num_partitions=-1, replication_factor=-1
    )
