"""ShareGroupHeartbeat (API key 76): join, stay in and leave a share group (KIP-932)."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.handlers.group_assignments import assignment_for_member
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(1, 1)
def share_group_heartbeat(
    ctx: RequestContext, request: ShareGroupHeartbeatRequest
) -> Steps[ShareGroupHeartbeatResponse | Deferred]:
    require_level(ctx, SHARE_VERSION)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    names = request.subscribed_topic_names
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    for some in batched(names or ()):
        if any(name in denied for name in some):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        yield None
    heartbeat = ShareHeartbeat(
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.client_host}",
        rack_id=request.rack_id,
        topic_names=None if names is None else tuple(names),
    )
    deferred = Deferred()
    ctx.services.groups.share.heartbeat(
        request.group_id, heartbeat, lambda result: deferred.complete(_response(result))
    )
    return deferred


def _response(result: ShareHeartbeatResult) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=result.error,
        error_message=readable(result.message),
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment_for_member(result.assignment),
    )
