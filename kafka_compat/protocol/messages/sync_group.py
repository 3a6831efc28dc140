"""SyncGroup (API key 14): the assignments of a classic group, from its leader and to its members."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
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
class SyncGroupRequestAssignment:
    """The assignment of one member, in the format of the assignor."""

    member_id: String = ""
    assignment: Bytes = b""


@request(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """`assignments` is empty except from the leader. Version 3 knows static members, version 5 checks the
    protocol.
    """

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: NullableString = field("3+", default=None)
    protocol_type: NullableString = field("5+", default=None)
    protocol_name: NullableString = field("5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = []


@response(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The assignment of the member that asks."""

    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = 0
    protocol_type: NullableString = field("5+", default=None)
    protocol_name: NullableString = field("5+", default=None)
    assignment: Bytes = b""
