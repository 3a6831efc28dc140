"""FindCoordinator (key 10): which broker speaks for a group or a transactional id.

Version 1 brings transactional ids, 4 several keys at once (KIP-699). The topic that holds a coordinator's
state is made when its coordinator is first looked for. While there is no such topic for transactional ids,
any broker may say so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.shards import shard_of
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_compat.topic_names import OFFSETS_TOPIC

GROUP: Final = 0
TRANSACTION: Final = 1


class _Found(NamedTuple):
    error: ErrorCode
    message: str = ""
    node_id: int = -1
    host: str = ""
    port: int = -1


@handler(ApiKey.FIND_COORDINATOR)
async def find_coordinator(ctx: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if ctx.api_version >= 4:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    error_code=found.error,
                    error_message=found.message,
                    node_id=found.node_id,
                    host=found.host,
                    port=found.port,
                )
                for key in request.coordinator_keys
                for found in (await _find(ctx, request.key_type, key),)
            ]
        )
    found = await _find(ctx, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error,
        error_message=found.message or found.error.name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(ctx: RequestContext, key_type: int, key: str) -> _Found:
    metadata = ctx.broker.metadata
    if key_type == TRANSACTION:
        return _node(ctx, metadata.local_id)
    if key_type != GROUP:
        return _Found(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}")
    if OFFSETS_TOPIC not in metadata.topics:
        try:
            await ctx.broker.topics.ensure_internal(OFFSETS_TOPIC)
        except KafkaError as error:
            return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    topic = metadata.topics[OFFSETS_TOPIC]
    return _node(ctx, topic.partitions[shard_of(key, len(topic.partitions))].leader)


def _node(ctx: RequestContext, broker_id: int) -> _Found:
    broker = ctx.broker.metadata.brokers.get(broker_id)
    endpoint = None if broker is None else broker.endpoints.get(ctx.listener_name)
    if endpoint is None:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(ErrorCode.NONE, node_id=broker_id, host=endpoint[0], port=endpoint[1])
