"""ListGroups (API key 16): the groups that a broker coordinates."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Empty filters match all groups. Version 4 filters by state (KIP-518), version 5 by type (KIP-848)."""

    states_filter: list[s.String] = s.field("4+", default=[])
    types_filter: list[s.String] = s.field("5+", default=[])


@s.struct
class ListedGroup:
    group_id: s.String = ""
    protocol_type: s.String = ""
    group_state: s.String = s.field("4+", default="")
    group_type: s.String = s.field("5+", default="")


@s.response(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    error_code: s.Int16 = 0
    groups: list[ListedGroup] = []
