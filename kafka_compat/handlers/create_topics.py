"""CreateTopics (key 19). Each topic succeeds or fails by itself; version 5 tells the configs in force, 7 the
topic id.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from kafka_compat.configs import tell_of_no_effect
from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_FIRST_VERSION_WITH_DEFAULTS = 4
_OF_KRAFT = "__cluster_metadata"
PARTITIONS_PER_REQUEST_MAX = 10_000
"""As KRaft's controller has it: one request must not keep the broker from everyone else's."""


@handler(ApiKey.CREATE_TOPICS)
async def create_topics(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    asked = sum(max(topic.num_partitions, len(topic.assignments), 1) for topic in request.topics)
    if asked > PARTITIONS_PER_REQUEST_MAX:
        problem = "Excessively large number of partitions per request."
        refused = [_failure(topic, ErrorCode.POLICY_VIOLATION, problem) for topic in request.topics]
        return CreateTopicsResponse(topics=refused)
    counts = Counter(topic.name for topic in request.topics)

    async def created(topic: CreatableTopic) -> CreatableTopicResult:
        if counts[topic.name] > 1:
            problem = "Found multiple entries for this topic."
            return _failure(topic, ErrorCode.INVALID_REQUEST, problem)
        if topic.name == _OF_KRAFT:
            problem = f"Creation of internal topic {_OF_KRAFT} is prohibited."
            return _failure(topic, ErrorCode.INVALID_REQUEST, problem)
        try:
            return await _create(ctx, topic, request)
        except KafkaError as error:
            return _failure(topic, error.code, error.message)

    # A cluster's controller makes them together.
    return CreateTopicsResponse(topics=list(await asyncio.gather(*map(created, request.topics))))


async def _create(
    ctx: RequestContext, topic: CreatableTopic, request: CreateTopicsRequest
) -> CreatableTopicResult:
    assignments = {item.partition_index: tuple(item.broker_ids) for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once.")
    if assignments and (topic.num_partitions != -1 or topic.replication_factor != -1):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    defaults_allowed = ctx.api_version >= _FIRST_VERSION_WITH_DEFAULTS
    if not assignments and not defaults_allowed and topic.num_partitions == -1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if not assignments and not defaults_allowed and topic.replication_factor == -1:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}"
            )
        configs[config.name] = config.value
    created = await ctx.broker.topics.create(
        topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments or None,
        configs=configs,
        validate_only=request.validate_only,
        timeout_ms=request.timeout_ms,
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
            for entry in ctx.broker.configs.topic_entries(configs)
        ]
    return result


def _failure(topic: CreatableTopic, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        error_code=code,
        error_message=message,
        num_partitions=-1,
        replication_factor=-1,
    )
