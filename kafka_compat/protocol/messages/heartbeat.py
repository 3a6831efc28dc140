"""Heartbeat (API key 12): keep the session of a classic group member alive."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """Version 3 adds static members (group_instance_id)."""

    group_id: s.String = ""
    generation_id: s.Int32 = 0
    member_id: s.String = ""
    group_instance_id: s.NullableString = s.field("3+", default=None)


@s.response(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """REBALANCE_IN_PROGRESS means that the member must rejoin."""

    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    error_code: s.Int16 = 0
