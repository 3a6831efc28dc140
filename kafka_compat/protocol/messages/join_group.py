"""JoinGroup (API key 11): join the rebalance of a classic group."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class JoinGroupRequestProtocol:
    """An assignor that the member supports, and the member's subscription in the assignor's format."""

    name: s.String = ""
    metadata: s.Bytes = b""


@s.request(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """A new member sends an empty member ID. In version 4 and later, the response is then MEMBER_ID_REQUIRED
    with the ID to use (KIP-394). Version 1 adds the rebalance timeout, version 5 adds static members
    (KIP-345), and version 8 adds the reason for joining. Version 7 adds the protocol type to the response.
    """

    group_id: s.String = ""
    session_timeout_ms: s.Int32 = 0
    rebalance_timeout_ms: s.Int32 = s.field("1+", default=-1)
    member_id: s.String = ""
    group_instance_id: s.NullableString = s.field("5+", default=None)
    protocol_type: s.String = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: s.NullableString = s.field("8+", default=None)


@s.struct
class JoinGroupResponseMember:
    """A member and its subscription, from which the leader computes the assignment."""

    member_id: s.String = ""
    group_instance_id: s.NullableString = s.field("5+", default=None)
    metadata: s.Bytes = b""


@s.response(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """`members` is empty except in the response to the group leader. If `skip_assignment` (version 9) is
    true, the leader is a static member that has rejoined, and must not compute a new assignment (KIP-814).
    """

    throttle_time_ms: s.Int32 = s.field("2+", default=0)
    error_code: s.Int16 = 0
    generation_id: s.Int32 = -1
    protocol_type: s.NullableString = s.field("7+", default=None)
    protocol_name: s.NullableString = s.field(default="", nullable="7+")
    leader: s.String = ""
    skip_assignment: s.Bool = s.field("9+", default=False)
    member_id: s.String = ""
    members: list[JoinGroupResponseMember] = []
