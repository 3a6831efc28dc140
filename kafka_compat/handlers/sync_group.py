"""SyncGroup (API key 14): the group's leader sends the assignments, and every member receives its own.

Version 3 adds static members (KIP-345), and version 5 adds the protocol type and name, which must match those
of the group (KIP-559).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Sync, SyncResult
from kafka_compat.handlers.authorization import require
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 5)
def sync_group(ctx: RequestContext, request: SyncGroupRequest) -> Steps[SyncGroupResponse | Deferred]:
    if ctx.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    assignments: dict[str, bytes] = {}
    for some in batched(request.assignments):
        assignments.update((one.member_id, one.assignment) for one in some)
        yield None
    sync = Sync(
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=assignments,
    )
    deferred = Deferred()
    ctx.services.groups.classic.sync(
        request.group_id, sync, lambda result: deferred.complete(_response(result))
    )
    return deferred


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
