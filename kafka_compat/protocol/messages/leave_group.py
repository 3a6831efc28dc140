"""LeaveGroup (API key 13)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Int16,
    Int32,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class MemberIdentity:
    member_id: String = field("3+", default="")
    group_instance_id: NullableString = field("3+", default=None)
    reason: NullableString = field("5+", default=None)


@request(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: String = ""
    member_id: String = field("0-2", default="")
    members: list[MemberIdentity] = field("3+", default=[])


@struct
class MemberResponse:
    member_id: String = field("3+", default="")
    group_instance_id: NullableString = field("3+", default="")
    error_code: Int16 = field("3+", default=0)


@response(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = 0
    members: list[MemberResponse] = field("3+", default=[])
