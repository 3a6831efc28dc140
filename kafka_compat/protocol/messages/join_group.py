"""JoinGroup (API key 11): enter the rebalance of a classic group."""

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
    """An assignor that the member supports, with its subscription in the format of that assignor."""

    name: String = ""
    metadata: Bytes = b""


@request(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """An empty member id joins; since version 4 the answer is then MEMBER_ID_REQUIRED with the id to join
    with (KIP-394). Version 1 adds the rebalance timeout, version 5 static members (KIP-345), version 7 the
    protocol type, version 8 the reason.
    """

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
    """A member with its subscription: for the leader, who assigns."""

    member_id: String = ""
    group_instance_id: NullableString = field("5+", default=None)
    metadata: Bytes = b""


@response(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """`members` is empty except for the leader. `skip_assignment` (version 9) tells a leader that came back
    as a static member that the assignment stands (KIP-814).
    """

    throttle_time_ms: Int32 = field("2+", default=0)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: NullableString = field("7+", default=None)
    protocol_name: NullableString = field(default="", nullable="7+")
    leader: String = ""
    skip_assignment: Bool = field("9+", default=False)
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []
