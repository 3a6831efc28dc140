"""ConsumerGroupHeartbeat (API key 68): join, stay in and leave a group with the consumer rebalance protocol
(KIP-848). In version 0, the broker creates the IDs of new members.
"""

from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.consumer.member import JOIN_EPOCH
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.handlers.group_assignments import assignment_for_member
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.features import GROUP_VERSION
from kafka_compat.metadata.topic_nodes import new_id
from kafka_compat.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from uuid import UUID


@handler(0, 1)
def consumer_group_heartbeat(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> Steps[ConsumerGroupHeartbeatResponse | Deferred]:
    require_level(ctx, GROUP_VERSION)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    names = request.subscribed_topic_names
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    for some in batched(names or ()):
        if any(name in denied for name in some):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        yield None
    member_id = request.member_id
    if not member_id and ctx.api_version == 0 and request.member_epoch == JOIN_EPOCH:
        member_id = new_id()
    owned = request.topic_partitions
    owned_by_id = None if owned is None else (yield from _by_id(owned))
    heartbeat = Heartbeat(
        member_id=member_id,
        member_epoch=request.member_epoch,
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.client_host}",
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=None if names is None else tuple(names),
        topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=owned_by_id,
        may_describe=lambda topic: topic not in denied,
    )
    deferred = Deferred()
    ctx.services.groups.consumer.heartbeat(
        request.group_id, heartbeat, lambda result: deferred.complete(_response(result))
    )
    return deferred


def _by_id(owned: "list[TopicPartitions]") -> "Steps[dict[UUID, set[int]]]":
    """Return the partitions of each topic ID, without duplicates."""
    by_id: dict[UUID, set[int]] = {}
    for topic in owned:
        partitions = by_id.setdefault(topic.topic_id, set())
        for some in batched(topic.partitions):
            partitions.update(some)
            yield None
    return by_id


def _response(result: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=result.error,
        error_message=readable(result.message),
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment_for_member(result.assignment),
    )
