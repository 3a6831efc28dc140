"""DeleteGroups (API key 42): delete empty groups with their offsets."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsRequest:
    """A group with members is rejected with NON_EMPTY_GROUP."""

    groups_names: list[s.String] = []


@s.struct
class DeletableGroupResult:
    group_id: s.String = ""
    error_code: s.Int16 = 0
    error_message: s.NullableString = s.field("3+", default=None)


@s.response(ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: s.Int32 = 0
    results: list[DeletableGroupResult] = []
