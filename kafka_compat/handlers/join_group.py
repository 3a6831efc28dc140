"""JoinGroup (API key 11): join a group or remain a member. The response is sent when the rebalance completes.

Version 1 adds the rebalance timeout (KIP-62), and version 4 adds the ID with which a new member must rejoin
(KIP-394). Versions 5, 7, 8 and 9 add static members (KIP-345), the protocol type in the response (KIP-559), a
reason for joining (KIP-800) and `skip_assignment` (KIP-814), respectively.
"""

from typing import Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Join, JoinResult
from kafka_compat.handlers.authorization import require
from kafka_compat.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafka_compat.security.authorizer import Operation, ResourceType

_PROTOCOLS_MAX: Final = 1_000
"""Maximum number of protocols of a member. Clients have fewer than ten."""


@handler(0, 9)
def join_group(ctx: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse | Deferred:
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    if len(request.protocols) > _PROTOCOLS_MAX:
        result = JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        return _response(result, ctx.api_version)
    version = ctx.api_version
    join = Join(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.client_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        reason=request.reason or "not provided",
        requires_known_member_id=version >= 4 and request.group_instance_id is None,
        supports_skipping_assignment=version >= 9,
    )
    deferred = Deferred()
    ctx.services.groups.classic.join(
        request.group_id, join, lambda result: deferred.complete(_response(result, version))
    )
    return deferred


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=(result.protocol_name or "") if version < 7 else (result.protocol_name or None),
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )
