"""DeleteTopics (key 20): by name, from version 6 also by topic id (KIP-516)."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_NO_TOPIC_ID = UUID(int=0)


@handler(ApiKey.DELETE_TOPICS)
async def delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if ctx.api_version >= 6:
        wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        wanted = [(name, _NO_TOPIC_ID) for name in request.topic_names]
    names = Counter(name or ctx.broker.metadata.topic_name(topic_id) for name, topic_id in wanted)

    async def deleted(name: str | None, topic_id: UUID) -> DeletableTopicResult:
        resolved = name if name is not None else ctx.broker.metadata.topic_name(topic_id)
        result = DeletableTopicResult(name=resolved, topic_id=topic_id)
        try:
            if name is not None and topic_id != _NO_TOPIC_ID:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified."
                )
            if resolved is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has this id.")
            if names[resolved] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic occurs more than once in the request.")
            if not ctx.broker.config.bool("delete.topic.enable"):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST if ctx.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
                )
            known = ctx.broker.metadata.topics.get(resolved)
            if known is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
                )
            result.topic_id = known.topic_id
            await ctx.broker.topics.delete(resolved, request.timeout_ms)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message or None
        return result

    # A cluster's controller deletes them together.
    return DeleteTopicsResponse(responses=list(await asyncio.gather(*(deleted(*item) for item in wanted))))
