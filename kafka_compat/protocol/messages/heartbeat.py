"""Heartbeat (API key 12): a member of a classic group is alive."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, NullableString, String, field, request, response


@request(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """Version 3 knows static members."""

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: NullableString = field("3+", default=None)


@response(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = 0
