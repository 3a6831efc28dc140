"""SyncGroup (API key 14): assignments of a classic group, sent by its leader and received by its members."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class SyncGroupRequestAssignment:
    """The assignment of one member, in the format of the assignor."""

    member_id: s.String = ""
    assignment: s.Bytes = b""


@s.request(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """`assignments` is empty in requests from members other than the leader. Version 3 adds static members;
    version 5 adds the protocol type and name, which the coordinator verifies.
    """

    group_id: s.String = ""
    generation_id: s.Int32 = 0
    member_id: s.String = ""
    group_instance_id: s.NullableString = s.field("3+", default=None)
    protocol_type: s.NullableString = s.field("5+", default=None)
    protocol_name: s.NullableString = s.field("5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = []


@s.response(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The assignment of the requesting member."""

    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    error_code: s.Int16 = 0
    protocol_type: s.NullableString = s.field("5+", default=None)
    protocol_name: s.NullableString = s.field("5+", default=None)
    assignment: s.Bytes = b""
