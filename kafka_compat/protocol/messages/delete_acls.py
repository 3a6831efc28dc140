"""DeleteAcls (API key 31): delete access control entries that match filters."""

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


@struct
class DeleteAclsFilter:
    """Which entries to delete: null names match all; enumeration value 1 (ANY) matches all."""

    resource_type_filter: Int8 = 0
    resource_name_filter: NullableString = ""
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: NullableString = ""
    host_filter: NullableString = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@request(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    """Version 1 adds the pattern type (KIP-290), version 3 the resource type user."""

    filters: list[DeleteAclsFilter] = []


@struct
class DeleteAclsMatchingAcl:
    """An entry that was deleted, or could not be."""

    error_code: Int16 = 0
    error_message: NullableString = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = field("1+", default=3)
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class DeleteAclsFilterResult:
    """What one filter has deleted."""

    error_code: Int16 = 0
    error_message: NullableString = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@response(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    """Results are in the order of the filters."""

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
