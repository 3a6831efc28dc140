"""FindCoordinator (API key 10): return the broker that coordinates a group, a transactional ID or a
share-partition.

Version 1 adds transactional IDs, version 4 accepts several keys in one request (KIP-699), and version 6 adds
share-partitions, whose share coordinators only brokers may look up (KIP-932). The topics
`__consumer_offsets`, `__transaction_state` and `__share_group_state` are created at the first request that
needs them.
"""

from collections.abc import Container, Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied, refusal, require_cluster
from kafka_compat.handlers.feature_gates import has_level
from kafka_compat.long_work import Steps
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kafka_compat.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.share_coordinator.records import normalized_key

_SHARE: Final = 2
_FIRST_VERSION_WITH_SHARE: Final = 6
_TOPICS: Final = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC, _SHARE: SHARE_STATE_TOPIC}
"""Maps key types to topics. Type 0 is a group, type 1 is a transactional ID, and type 2 is a share-partition.
"""

_RESOURCE_TYPES: Final = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
_MESSAGES: Final = {
    ErrorCode.NONE: "NONE",
    ErrorCode.INVALID_REQUEST: "This broker has no coordinator of that type.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""In versions 1 to 3, responses always have a message; in later versions, only with INVALID_REQUEST."""


_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)


class _Found(NamedTuple):
    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1
    message: str | None = None
    """A message instead of that of the error code."""


@handler(0, 6)
def find_coordinator(
    ctx: RequestContext, request: FindCoordinatorRequest
) -> Steps[FindCoordinatorResponse] | Coroutine[Any, Any, FindCoordinatorResponse]:
    topic = _topic(ctx, request.key_type)
    if topic == SHARE_STATE_TOPIC and request.coordinator_keys:
        require_cluster(ctx, Operation.CLUSTER_ACTION)
    if topic is not None and topic not in ctx.services.metadata.topics:
        return _after_creation(ctx, request, topic)
    return _answers(ctx, request, _denied(ctx, request.key_type))


def _topic(ctx: RequestContext, key_type: int) -> str | None:
    """Return the topic for a type of keys, or None if the request may not contain this type."""
    if key_type == _SHARE and (
        ctx.api_version < _FIRST_VERSION_WITH_SHARE or not has_level(ctx, SHARE_VERSION)
    ):
        return None
    return _TOPICS.get(key_type)


async def _after_creation(
    ctx: RequestContext, request: FindCoordinatorRequest, topic: str
) -> FindCoordinatorResponse:
    denied = _denied(ctx, request.key_type)
    keys = request.coordinator_keys if ctx.api_version >= 4 else [request.key]
    turn = await ctx.long_work.begin()
    for key in keys:
        if key not in denied and (request.key_type != _SHARE or normalized_key(key) is not None):
            break
        await turn.pause_if_due()
    else:
        return await ctx.long_work.finish(_answers(ctx, request, denied))
    if topic not in ctx.services.metadata.topics:
        # Ignore failures: clients retry when they receive COORDINATOR_NOT_AVAILABLE.
        with suppress(KafkaError):
            await ctx.services.topics.ensure_internal(topic)
    return await ctx.long_work.finish(_answers(ctx, request, denied))


def _denied(ctx: RequestContext, key_type: int) -> Container[str]:
    kind = _RESOURCE_TYPES.get(key_type)
    return () if kind is None else Denied(ctx, Operation.DESCRIBE, kind)


def _answers(
    ctx: RequestContext, request: FindCoordinatorRequest, denied: Container[str]
) -> Steps[FindCoordinatorResponse]:
    if ctx.api_version >= 4:
        response = FindCoordinatorResponse()
        for key in request.coordinator_keys:
            found = _find(ctx, request.key_type, key, denied)
            message = _MESSAGES[found.error] if found.error is ErrorCode.INVALID_REQUEST else ""
            response.coordinators.append(
                Coordinator(
                    key=key,
                    error_code=found.error,
                    error_message=message if found.message is None else found.message,
                    node_id=found.node_id,
                    host=found.host,
                    port=found.port,
                )
            )
            yield None
        return response
    found = _find(ctx, request.key_type, request.key, denied)
    return FindCoordinatorResponse(
        error_code=found.error,
        error_message=_MESSAGES[found.error] if found.message is None else found.message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(ctx: RequestContext, key_type: int, key: str, denied: Container[str]) -> _Found:
    if key in denied:
        return _Found(refusal(_RESOURCE_TYPES[key_type]).code)
    metadata = ctx.services.metadata
    name = _topic(ctx, key_type)
    if key_type == _SHARE and has_level(ctx, SHARE_VERSION):
        normalized = normalized_key(key)
        if name is None or normalized is None:
            return _Found(ErrorCode.INVALID_REQUEST, message="" if ctx.api_version >= 4 else _MALFORMED)
        key = normalized
    if name is None:
        return _Found(ErrorCode.INVALID_REQUEST)
    topic = metadata.topics.get(name)
    leader = -1 if topic is None else topic.partitions[shard_of(key, len(topic.partitions))].leader
    broker = metadata.brokers.get(leader)
    if broker is None:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(ErrorCode.NONE, leader, *ctx.services.address_for(broker, ctx.caller))
