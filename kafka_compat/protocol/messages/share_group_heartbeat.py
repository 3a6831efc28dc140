"""ShareGroupHeartbeat (API key 76): stay in a share group (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.consumer_group_heartbeat import Assignment


@s.request(ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """member_epoch is 0 to join and -1 to leave. Fields that have not changed since the last heartbeat are
    null. The member generates its own ID.
    """

    group_id: s.String = ""
    member_id: s.String = ""
    member_epoch: s.Int32 = 0
    rack_id: s.NullableString = None
    subscribed_topic_names: list[s.String] | None = None


@s.response(ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """`assignment` is null if the member's assignment has not changed."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    member_id: s.NullableString = None
    member_epoch: s.Int32 = 0
    heartbeat_interval_ms: s.Int32 = 0
    assignment: Assignment | None = None
