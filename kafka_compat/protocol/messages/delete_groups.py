"""DeleteGroups (API key 42): delete empty groups with their offsets."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, String, request, response, struct


@request(ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """A group with members is refused with NON_EMPTY_GROUP."""

    groups_names: list[String] = []


@struct
class DeletableGroupResult:
    """What became of one group."""

    group_id: String = ""
    error_code: Int16 = 0


@response(ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """One result per group."""

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
