"""LeaveGroup (API key 13): remove members from a group. The other members rebalance immediately.

Version 3 accepts several members, and identifies static members by their instance ID alone if necessary
(KIP-345). Version 5 adds a reason for leaving (KIP-800).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.groups.requests import LeaveResult, Leaving
from kafka_compat.handlers.authorization import require
from kafka_compat.long_work import Steps, gathered
from kafka_compat.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 5)
def leave_group(ctx: RequestContext, request: LeaveGroupRequest) -> Steps[Deferred]:
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    version = ctx.api_version
    members = request.members if version >= 3 else [MemberIdentity(member_id=request.member_id)]
    leaving = yield from gathered(
        Leaving(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            reason=member.reason or "not provided",
        )
        for member in members
    )
    deferred = Deferred()
    yield from ctx.services.groups.classic.leave(
        request.group_id,
        leaving,
        lambda result: ctx.long_work.start(_response(result, version), deferred.complete),
    )
    return deferred


def _response(result: LeaveResult, version: int) -> Steps[LeaveGroupResponse]:
    if version < 3:
        return LeaveGroupResponse(error_code=result.error or result.members[0][1])
    members = yield from gathered(
        MemberResponse(
            member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=error
        )
        for leaving, error in result.members
    )
    return LeaveGroupResponse(error_code=result.error, members=members)
