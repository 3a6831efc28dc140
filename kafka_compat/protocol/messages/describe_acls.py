"""DescribeAcls (API key 29): list access control entries that match a filter."""

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


@request(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsRequest:
    """Null names match all; enumeration value 1 (ANY) matches all. Version 1 adds the pattern type
    (KIP-290).
    """

    resource_type_filter: Int8 = 0
    resource_name_filter: NullableString = ""
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: NullableString = ""
    host_filter: NullableString = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class AclDescription:
    """One entry of a resource."""

    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class DescribeAclsResource:
    """The matching entries of one resource."""

    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = field("1+", default=3)
    acls: list[AclDescription] = []


@response(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsResponse:
    """Entries by resource."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""
    resources: list[DescribeAclsResource] = []
