"""Heartbeat (key 12): a member lives, and learns whether it must join again. Version 3 brings static members
(KIP-345).
"""

from __future__ import annotations

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@handler(ApiKey.HEARTBEAT)
def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    error = ctx.broker.groups.heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return HeartbeatResponse(error_code=error)
