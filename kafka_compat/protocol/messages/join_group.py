"""JoinGroup (API key 11)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Bytes,
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
class JoinGroupRequestProtocol:
    name: String = ""
    metadata: Bytes = b""


@request(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Int32 = field("1+", default=-1)
    member_id: String = ""
    group_instance_id: NullableString = field("5+", default=None)
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: NullableString = field("8+", default=None)


@struct
class JoinGroupResponseMember:
    member_id: String = ""
    group_instance_id: NullableString = field("5+", default=None)
    metadata: Bytes = b""


@response(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: Int32 = field("2+", default=0)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: NullableString = field("7+", default=None)
    protocol_name: NullableString = field(default="", nullable="7+")
    leader: String = ""
    skip_assignment: Bool = field("9+", default=False)
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []
