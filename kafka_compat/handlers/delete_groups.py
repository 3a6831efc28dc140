"""DeleteGroups (API key 42, KIP-229): delete empty groups and their committed offsets."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType

_GROUPS_AT_ONCE = 64


@handler(0, 3)
def delete_groups(
    ctx: RequestContext, request: DeleteGroupsRequest
) -> Steps[DeleteGroupsResponse | Deferred]:
    distinct: dict[str, None] = {}
    for some in batched(request.groups_names):
        distinct.update(dict.fromkeys(some))
        yield None
    names = list(distinct)
    errors: dict[str, ErrorCode] = {}
    denied = Denied(ctx, Operation.DELETE, ResourceType.GROUP)
    for name in names:
        if name in denied:
            errors[name] = ErrorCode.GROUP_AUTHORIZATION_FAILED
        yield None
    allowed = [name for name in names if name not in errors]
    if not allowed:
        return (yield from _response(names, errors))

    def settle(found: dict[str, ErrorCode]) -> None:
        errors.update(found)
        if len(errors) == len(names):
            ctx.long_work.start(_response(names, errors), deferred.complete)

    deferred = Deferred()
    for first in range(0, len(allowed), _GROUPS_AT_ONCE):
        ctx.services.groups.delete_groups(allowed[first : first + _GROUPS_AT_ONCE], settle)
        yield None
    return deferred


def _response(names: list[str], errors: dict[str, ErrorCode]) -> Steps[DeleteGroupsResponse]:
    response = DeleteGroupsResponse()
    for group_id in names:
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=errors[group_id]))
        yield None
    return response
