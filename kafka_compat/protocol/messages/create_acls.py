"""CreateAcls (API key 30)."""

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
class AclCreation:
    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Int8 = field("1+", default=3)
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@request(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsRequest:
    creations: list[AclCreation] = []


@struct
class AclCreationResult:
    error_code: Int16 = 0
    error_message: NullableString = ""


@response(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
