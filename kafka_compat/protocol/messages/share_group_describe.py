"""ShareGroupDescribe (API key 77): describe share groups (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.consumer_group_describe import Assignment


@s.request(ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    group_ids: list[s.String] = []
    include_authorized_operations: s.Bool = False


@s.struct
class Member:
    """A member and its current assignment."""

    member_id: s.String = ""
    rack_id: s.NullableString = None
    member_epoch: s.Int32 = 0
    client_id: s.String = ""
    client_host: s.String = ""
    subscribed_topic_names: list[s.String] = []
    assignment: Assignment = s.field(default_factory=Assignment)


@s.struct
class DescribedGroup:
    """One group. authorized_operations is a bit field of ACL operations, or the lowest int32 if it was not
    requested.
    """

    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    group_id: s.String = ""
    group_state: s.String = ""
    group_epoch: s.Int32 = 0
    assignment_epoch: s.Int32 = 0
    assignor_name: s.String = ""
    members: list[Member] = []
    authorized_operations: s.Int32 = -2147483648


@s.response(ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    throttle_time_ms: s.Int32 = 0
    groups: list[DescribedGroup] = []
