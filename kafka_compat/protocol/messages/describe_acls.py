"""DescribeAcls (API key 29): list access control entries that match a filter."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsRequest:
    """A null name or the value 1 (ANY) matches everything. Version 1 adds the pattern type (KIP-290)."""

    resource_type_filter: s.Int8 = 0
    resource_name_filter: s.NullableString = ""
    pattern_type_filter: s.Int8 = s.field("1+", default=3)
    principal_filter: s.NullableString = ""
    host_filter: s.NullableString = ""
    operation: s.Int8 = 0
    permission_type: s.Int8 = 0


@s.struct
class AclDescription:
    principal: s.String = ""
    host: s.String = ""
    operation: s.Int8 = 0
    permission_type: s.Int8 = 0


@s.struct
class DescribeAclsResource:
    """The matching entries of one resource."""

    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    pattern_type: s.Int8 = s.field("1+", default=3)
    acls: list[AclDescription] = []


@s.response(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsResponse:
    """The matching entries, grouped by resource."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    resources: list[DescribeAclsResource] = []
