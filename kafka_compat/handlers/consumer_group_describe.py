"""ConsumerGroupDescribe (API key 69): state, members and assignments of groups with the consumer rebalance
protocol (KIP-848). Version 1 adds the type of each member (KIP-1099).
"""

from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied, allowed_group_operations, allows
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.handlers.group_assignments import described_assignment
from kafka_compat.long_work import Steps
from kafka_compat.metadata.features import GROUP_VERSION
from kafka_compat.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafka_compat.protocol.messages.consumer_group_describe import Member as DescribedMember
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.member import Member
    from kafka_compat.groups.consumer.state import View

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


@handler(0, 1)
def consumer_group_describe(
    ctx: RequestContext, request: ConsumerGroupDescribeRequest
) -> Steps[ConsumerGroupDescribeResponse]:
    require_level(ctx, GROUP_VERSION)
    response = ConsumerGroupDescribeResponse()
    described: dict[str, DescribedGroup] = {}
    for group_id in request.group_ids:
        yield None
        group = described.get(group_id)
        if group is None:
            # Keep only one copy of a repeated group in memory.
            group = described[group_id] = yield from _describe(ctx, group_id)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = allowed_group_operations(ctx, group_id)
        response.groups.append(group)
    return response


def _describe(ctx: RequestContext, group_id: str) -> Steps[DescribedGroup]:
    if not allows(ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = ctx.services.groups
    error, view = groups.consumer.describe(group_id)
    if view is None:
        message = None
        if error is ErrorCode.GROUP_ID_NOT_FOUND:
            is_known = groups.progress(group_id) is not None
            message = f"Group {group_id} " + ("is not a consumer group." if is_known else "not found.")
        return DescribedGroup(group_id=group_id, error_code=error, error_message=readable(message))
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    members: list[DescribedMember] = []
    # The group may change between the steps.
    view = view._replace(members=dict(view.members), targets=dict(view.targets))
    for member in view.members.values():
        described = _member(ctx, member, view)
        yield None
        shown = (*described.assignment.topic_partitions, *described.target_assignment.topic_partitions)
        if any(topic.topic_name in denied for topic in shown):
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
        assignor_name=view.preferred_assignor or groups.consumer.default_assignor,
        members=members,
    )


def _member(ctx: RequestContext, member: "Member", view: "View") -> DescribedMember:
    held = {
        topic_id: [*member.assigned.get(topic_id, ()), *member.pending_revocation.get(topic_id, ())]
        for topic_id in dict.fromkeys((*member.assigned, *member.pending_revocation))
    }
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=described_assignment(ctx, held),
        target_assignment=described_assignment(ctx, view.targets.get(member.member_id, {})),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )
