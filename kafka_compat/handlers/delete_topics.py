"""DeleteTopics (API key 20): delete topics by name or, in version 6 and later, by topic ID (KIP-516)."""

import asyncio
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied
from kafka_compat.handlers.create_topics import TOPICS_AT_ONCE
from kafka_compat.long_work import batched, counted
from kafka_compat.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.security.authorizer import Operation, ResourceType

_STRICT_SINCE = 5
"""First version whose clients support the quota for deleted partitions (KIP-599)."""


@handler(0, 6)
async def delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    turn = await ctx.long_work.begin()
    wanted: list[tuple[str | None, UUID]] = []
    for topics in batched(request.topics):
        wanted += [(topic.name, topic.topic_id) for topic in topics]
        await turn.pause_if_due()
    for some_names in batched(request.topic_names):
        wanted += [(name, ZERO_UUID) for name in some_names]
        await turn.pause_if_due()
    names = await ctx.long_work.finish(
        counted(name or ctx.services.metadata.topic_name(topic_id) for name, topic_id in wanted)
    )

    hidden = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    denied = Denied(ctx, Operation.DELETE, ResourceType.TOPIC)
    quotas = ctx.services.quotas
    mutation = None if quotas is None else quotas.mutation(ctx, _STRICT_SINCE)

    async def deleted(name: str | None, topic_id: UUID) -> DeletableTopicResult:
        resolved = name if name is not None else ctx.services.metadata.topic_name(topic_id)
        result = DeletableTopicResult(name=resolved, topic_id=topic_id)
        try:
            if name is not None and topic_id != ZERO_UUID:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified."
                )
            if resolved is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has this id.")
            # Always check both DESCRIBE and DELETE, because the audit log must contain both decisions.
            is_hidden, is_denied = resolved in hidden, resolved in denied
            if is_hidden and name is None:
                result.name = None
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if is_denied:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if names[resolved] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic occurs more than once in the request.")
            if not ctx.services.config.bool("delete.topic.enable"):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST if ctx.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
                )
            known = ctx.services.metadata.topics.get(resolved)
            if known is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
                )
            result.topic_id = known.topic_id
            if mutation is not None:
                mutation.charge(len(known.partitions))
            await ctx.services.topics.delete(resolved, request.timeout_ms)
        except Exception as error:
            failure = as_kafka_error(error, f"DeleteTopics for topic {resolved!r}")
            result.error_code, result.error_message = failure.code, failure.message or None
        return result

    response = DeleteTopicsResponse()
    for first in range(0, len(wanted), TOPICS_AT_ONCE):
        # Delete several topics concurrently: a cluster's controller then processes them as one batch.
        together = (deleted(*item) for item in wanted[first : first + TOPICS_AT_ONCE])
        response.responses += await asyncio.gather(*together)
        await turn.pause_if_due()
    if mutation is not None:
        response.throttle_time_ms = mutation.throttle_time_ms
    return response
