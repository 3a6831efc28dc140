"""Heartbeat (API key 12): keep a group member's session alive, and report when the member must rejoin.
Version 3 adds static members (KIP-345).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.authorization import require
from kafka_compat.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 4)
def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    error = ctx.services.groups.classic.heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return HeartbeatResponse(error_code=error)
