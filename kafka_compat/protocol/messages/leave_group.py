"""LeaveGroup (API key 13): members leave a classic group."""

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
    """A member by its id, or by its instance id with an empty member id."""

    member_id: String = field("3+", default="")
    group_instance_id: NullableString = field("3+", default=None)
    reason: NullableString = field("5+", default=None)


@request(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """One member until version 2, several since version 3 (KIP-345); version 5 tells the reason."""

    group_id: String = ""
    member_id: String = field("0-2", default="")
    members: list[MemberIdentity] = field("3+", default=[])


@struct
class MemberResponse:
    """What became of one member."""

    member_id: String = field("3+", default="")
    group_instance_id: NullableString = field("3+", default="")
    error_code: Int16 = field("3+", default=0)


@response(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """Since version 3 each member has its own error."""

    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = 0
    members: list[MemberResponse] = field("3+", default=[])
