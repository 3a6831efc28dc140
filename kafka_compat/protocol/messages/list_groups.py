"""ListGroups (API key 16): the groups that a broker coordinates."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, String, field, request, response, struct


@request(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """No filter lists all. Filters by state since version 4 (KIP-518), by type since version 5 (KIP-848)."""

    states_filter: list[String] = field("4+", default=[])
    types_filter: list[String] = field("5+", default=[])


@struct
class ListedGroup:
    """One group."""

    group_id: String = ""
    protocol_type: String = ""
    group_state: String = field("4+", default="")
    group_type: String = field("5+", default="")


@response(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """Only the groups that this broker coordinates."""

    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
