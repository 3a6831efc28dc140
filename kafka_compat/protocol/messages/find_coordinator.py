"""FindCoordinator (API key 10): which broker coordinates a group or a transactional id."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@request(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """key_type: 0 group, 1 transactional id, 2 share group. Version 4 asks for several keys at once
    (KIP-699).
    """

    key: String = field("0-3", default="")
    key_type: Int8 = field("1+", default=0)
    coordinator_keys: list[String] = field("4+", default=[])


@struct
class Coordinator:
    """The coordinator of one key."""

    key: String = field("4+", default="")
    node_id: Int32 = field("4+", default=0)
    host: String = field("4+", default="")
    port: Int32 = field("4+", default=0)
    error_code: Int16 = field("4+", default=0)
    error_message: NullableString = field("4+", default="")


@response(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """Until version 3 the coordinator itself, since version 4 one per key."""

    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("0-3", default=0)
    error_message: NullableString = field("1-3", default="")
    node_id: Int32 = field("0-3", default=0)
    host: String = field("0-3", default="")
    port: Int32 = field("0-3", default=0)
    coordinators: list[Coordinator] = field("4+", default=[])
