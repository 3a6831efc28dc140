"""DescribeGroups (API key 15): state and members of classic groups."""

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


@request(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Version 3 can ask for authorized operations, version 4 knows static members."""

    groups: list[String] = []
    include_authorized_operations: Bool = field("3+", default=False)


@struct
class DescribedGroupMember:
    """A member; metadata and assignment are in the format of the group's protocol type."""

    member_id: String = ""
    group_instance_id: NullableString = field("4+", default=None)
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


@struct
class DescribedGroup:
    """One group. A group that is unknown is Dead without an error until version 5, and GROUP_ID_NOT_FOUND
    with a message since version 6 (KIP-1043).
    """

    error_code: Int16 = 0
    error_message: NullableString = field("6+", default=None)
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Int32 = field("3+", default=-2147483648)


@response(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """Groups are answered one by one."""

    throttle_time_ms: Int32 = field("1+", default=0)
    groups: list[DescribedGroup] = []
