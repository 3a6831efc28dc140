"""DescribeGroups (API key 15): state and members of groups.

Version 3 can request the authorized operations, and version 4 adds static members (KIP-345). In version 6 and
later, an unknown group and a group that does not use the classic protocol are errors (KIP-1043); in earlier
versions, they are returned with the state "Dead". Version 6 also reports the operations on groups' settings.
"""

from typing import Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import GroupState
from kafka_compat.handlers.authorization import allowed_group_operations, allowed_operations, allows
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType

_NOT_FOUND_FROM: Final = 6
_GROUP_SETTINGS_FROM: Final = 6


@handler(0, 6)
def describe_groups(ctx: RequestContext, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    response = DescribeGroupsResponse()
    groups: list[DescribedGroup] = []
    described: dict[str, DescribedGroup] = {}
    for group_id in request.groups:
        group = described.get(group_id)
        if group is None:
            # Keep only one copy of a repeated group in memory.
            group = described[group_id] = _describe(ctx, group_id)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = (
                    allowed_group_operations(ctx, group_id)
                    if ctx.api_version >= _GROUP_SETTINGS_FROM
                    else allowed_operations(ctx, ResourceType.GROUP, group_id)
                )
        is_denied = group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        (response.groups if is_denied else groups).append(group)
        yield None
    response.groups += groups
    return response


def _describe(ctx: RequestContext, group_id: str) -> DescribedGroup:
    if not allows(ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = ctx.services.groups
    error, group = groups.classic.describe(group_id)
    if error:
        return DescribedGroup(group_id=group_id, error_code=error)
    if group is None:
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
        if ctx.api_version >= _NOT_FOUND_FROM:
            is_known = groups.progress(group_id) is not None
            dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            dead.error_message = f"Group {group_id} " + (
                "is not a classic group." if is_known else "not found."
            )
        return dead
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )
