"""ShareGroupDescribe (API key 77): state, members and assignments of share groups (KIP-932)."""

from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied, allowed_group_operations, allows
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.handlers.group_assignments import described_assignment
from kafka_compat.long_work import Steps
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kafka_compat.protocol.messages.share_group_describe import Member as DescribedMember
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    pass

_ASSIGNOR = "simple"
_FIRST = (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_GROUP_ID)
"""Error codes of groups that come first in a response, as in Kafka."""


@handler(1, 1)
def share_group_describe(
    ctx: RequestContext, request: ShareGroupDescribeRequest
) -> Steps[ShareGroupDescribeResponse]:
    require_level(ctx, SHARE_VERSION)
    groups: dict[bool, list[DescribedGroup]] = {True: [], False: []}
    described: dict[str, DescribedGroup] = {}
    for group_id in request.group_ids:
        yield None
        group = described.get(group_id)
        if group is None:
            # Keep only one copy of a repeated group in memory.
            group = described[group_id] = yield from _describe(ctx, group_id)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = allowed_group_operations(ctx, group_id)
        groups[group.error_code in _FIRST].append(group)
    return ShareGroupDescribeResponse(groups=[*groups[True], *groups[False]])


def _describe(ctx: RequestContext, group_id: str) -> Steps[DescribedGroup]:
    if not allows(ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = ctx.services.groups
    error, view = groups.share.describe(group_id)
    if view is None:
        message = None
        if error is ErrorCode.GROUP_ID_NOT_FOUND:
            is_known = groups.progress(group_id) is not None
            message = f"Group {group_id} " + ("is not a share group." if is_known else "not found.")
        return DescribedGroup(group_id=group_id, error_code=error, error_message=readable(message))
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    members: list[DescribedMember] = []
    # The group may change between the steps.
    view = view._replace(members=dict(view.members))
    for member in view.members.values():
        described = DescribedMember(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topic_names),
            assignment=described_assignment(ctx, member.assigned),
        )
        yield None
        if any(topic.topic_name in denied for topic in described.assignment.topic_partitions):
            return DescribedGroup(
                group_id=group_id,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message="The group has topics that the client must not describe",
            )
        members.append(described)
    return DescribedGroup(
        group_id=group_id,
        group_state=view.state,
        group_epoch=view.epoch,
        assignment_epoch=view.target_epoch,
        assignor_name=_ASSIGNOR,
        members=members,
    )
