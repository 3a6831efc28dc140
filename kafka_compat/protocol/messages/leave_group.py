"""LeaveGroup (API key 13): remove members from a classic group."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class MemberIdentity:
    """A member, identified by its ID, or by its instance ID if the member ID is empty."""

    member_id: s.String = s.field("3+", default="")
    group_instance_id: s.NullableString = s.field("3+", default=None)
    reason: s.NullableString = s.field("5+", default=None)


@s.request(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """Version 3 and later can remove several members (KIP-345). Version 5 adds the reason for leaving."""

    group_id: s.String = ""
    member_id: s.String = s.field("0-2", default="")
    members: list[MemberIdentity] = s.field("3+", default=[])


@s.struct
class MemberResponse:
    member_id: s.String = s.field("3+", default="")
    group_instance_id: s.NullableString = s.field("3+", default="")
    error_code: s.Int16 = s.field("3+", default=0)


@s.response(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """In version 3 and later, each member has its own error code."""

    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    error_code: s.Int16 = 0
    members: list[MemberResponse] = s.field("3+", default=[])
