"""CreatePartitions (key 37): more partitions for a topic; each topic succeeds or fails by itself."""

from __future__ import annotations

from collections import Counter

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.create_topics import PARTITIONS_PER_REQUEST_MAX
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


@handler(ApiKey.CREATE_PARTITIONS)
async def create_partitions(
    ctx: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        result = results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            known = ctx.broker.metadata.topics.get(topic.name)
            if known is not None and topic.count - len(known.partitions) > PARTITIONS_PER_REQUEST_MAX:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"At most {PARTITIONS_PER_REQUEST_MAX} partitions can be added by one request.",
                )
            assignments = None
            if topic.assignments is not None:
                assignments = [tuple(item.broker_ids) for item in topic.assignments]
            await ctx.broker.topics.create_partitions(
                topic.name, topic.count, assignments, request.validate_only, request.timeout_ms
            )
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message or None
    return CreatePartitionsResponse(results=list(results.values()))
