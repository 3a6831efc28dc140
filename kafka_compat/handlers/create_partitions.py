"""CreatePartitions (API key 37): add partitions to topics. Each topic succeeds or fails individually."""

import asyncio
from collections import Counter

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied
from kafka_compat.handlers.create_topics import PARTITIONS_PER_REQUEST_MAX, TOPICS_AT_ONCE
from kafka_compat.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kafka_compat.security.authorizer import Operation, ResourceType

_STRICT_SINCE = 3
"""First version whose clients support the quota for created partitions (KIP-599)."""


@handler(0, 3)
async def create_partitions(
    ctx: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    counts = Counter(topic.name for topic in request.topics)
    denied = Denied(ctx, Operation.ALTER, ResourceType.TOPIC)
    quotas = ctx.services.quotas
    mutation = None if quotas is None else quotas.mutation(ctx, _STRICT_SINCE)
    charge = None if mutation is None else mutation.charge

    async def extended(topic: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            if topic.name in denied:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
            known = ctx.services.metadata.topics.get(topic.name)
            if known is not None and topic.count - len(known.partitions) > PARTITIONS_PER_REQUEST_MAX:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"At most {PARTITIONS_PER_REQUEST_MAX} partitions can be added by one request.",
                )
            assignments = None
            if topic.assignments is not None:
                assignments = [tuple(item.broker_ids) for item in topic.assignments]
            await ctx.services.topics.create_partitions(
                topic.name, topic.count, assignments, request.validate_only, request.timeout_ms, charge
            )
        except Exception as error:
            failure = as_kafka_error(error, f"CreatePartitions for topic {topic.name!r}")
            result.error_code, result.error_message = failure.code, failure.message or None
        return result

    results: dict[str, CreatePartitionsTopicResult] = {}
    turn = await ctx.long_work.begin()
    for first in range(0, len(request.topics), TOPICS_AT_ONCE):
        # Extend several topics concurrently, as in CreateTopics.
        for result in await asyncio.gather(*map(extended, request.topics[first : first + TOPICS_AT_ONCE])):
            results[result.name] = result
        await turn.pause_if_due()
    response = CreatePartitionsResponse(results=list(results.values()))
    if mutation is not None:
        response.throttle_time_ms = mutation.throttle_time_ms
    return response
