"""DeleteAcls (API key 31): delete access control entries that match filters."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class DeleteAclsFilter:
    """A filter for the entries to delete. A null name or the value 1 (ANY) matches everything."""

    resource_type_filter: s.Int8 = 0
    resource_name_filter: s.NullableString = ""
    pattern_type_filter: s.Int8 = s.field("1+", default=3)
    principal_filter: s.NullableString = ""
    host_filter: s.NullableString = ""
    operation: s.Int8 = 0
    permission_type: s.Int8 = 0


@s.request(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    """Version 1 adds the pattern type (KIP-290), and version 3 adds the `User` resource type."""

    filters: list[DeleteAclsFilter] = []


@s.struct
class DeleteAclsMatchingAcl:
    """A matching entry, with an error code if it was not deleted."""

    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    pattern_type: s.Int8 = s.field("1+", default=3)
    principal: s.String = ""
    host: s.String = ""
    operation: s.Int8 = 0
    permission_type: s.Int8 = 0


@s.struct
class DeleteAclsFilterResult:
    """The entries deleted by one filter."""

    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@s.response(ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    """One result for each filter, in the order of the request."""

    throttle_time_ms: s.Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
