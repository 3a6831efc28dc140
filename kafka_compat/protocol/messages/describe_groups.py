"""DescribeGroups (API key 15): state and members of classic groups."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Version 3 can request authorized operations, version 4 adds static members."""

    groups: list[s.String] = []
    include_authorized_operations: s.Bool = s.field("3+", default=False)


@s.struct
class DescribedGroupMember:
    """A member. Its metadata and assignment are in the format of the group's protocol type."""

    member_id: s.String = ""
    group_instance_id: s.NullableString = s.field("4+", default=None)
    client_id: s.String = ""
    client_host: s.String = ""
    member_metadata: s.Bytes = b""
    member_assignment: s.Bytes = b""


@s.struct
class DescribedGroup:
    """One group. In versions 0 to 5, an unknown group is Dead without an error; in version 6 and later, it
    has the error GROUP_ID_NOT_FOUND with a message (KIP-1043).
    """

    error_code: s.Int16 = 0
    error_message: s.NullableString = s.field("6+", default=None)
    group_id: s.String = ""
    group_state: s.String = ""
    protocol_type: s.String = ""
    protocol_data: s.String = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: s.Int32 = s.field("3+", default=-2147483648)


@s.response(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    groups: list[DescribedGroup] = []
