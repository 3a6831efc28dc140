"""FindCoordinator (API key 10): the broker that coordinates a group or a transactional ID."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """key_type is 0 (group), 1 (transactional ID) or 2 (share group). Version 4 has a key list (KIP-699)."""

    key: s.String = s.field("0-3", default="")
    key_type: s.Int8 = s.field("1+", default=0)
    coordinator_keys: list[s.String] = s.field("4+", default=[])


@s.struct
class Coordinator:
    key: s.String = s.field("4+", default="")
    node_id: s.Int32 = s.field("4+", default=0)
    host: s.String = s.field("4+", default="")
    port: s.Int32 = s.field("4+", default=0)
    error_code: s.Int16 = s.field("4+", default=0)
    error_message: s.NullableString = s.field("4+", default="")


@s.response(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """Contains one coordinator in versions 0 to 3, and a coordinator for each key in later versions."""

    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    error_code: s.Int16 = s.field("0-3", default=0)
    error_message: s.NullableString = s.field("1-3", default="")
    node_id: s.Int32 = s.field("0-3", default=0)
    host: s.String = s.field("0-3", default="")
    port: s.Int32 = s.field("0-3", default=0)
    coordinators: list[Coordinator] = s.field("4+", default=[])
