"""DeleteGroups (key 42, KIP-229): remove groups without members, with all their offsets."""

from __future__ import annotations

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


@handler(ApiKey.DELETE_GROUPS)
def delete_groups(ctx: RequestContext, request: DeleteGroupsRequest) -> object:
    ctx.broker.groups.delete_groups(request.groups_names, lambda errors: ctx.respond(_response(errors)))
    return PENDING


def _response(errors: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error) for group_id, error in errors.items()
        ]
    )
