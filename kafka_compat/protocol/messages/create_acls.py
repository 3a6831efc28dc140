"""CreateAcls (API key 30): add access control entries."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class AclCreation:
    """One entry. The enumerations are Kafka's for AclBinding: resource types 2 topic, 3 group, 4 cluster, 5
    transactional ID, 6 delegation token, 7 user; pattern types 3 literal, 4 prefixed.
    """

    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    resource_pattern_type: s.Int8 = s.field("1+", default=3)
    principal: s.String = ""
    host: s.String = ""
    operation: s.Int8 = 0
    permission_type: s.Int8 = 0


@s.request(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsRequest:
    """Version 1 adds the pattern type (KIP-290), version 3 the `User` resource type."""

    creations: list[AclCreation] = []


@s.struct
class AclCreationResult:
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""


@s.response(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsResponse:
    """The results, in the order of the request."""

    throttle_time_ms: s.Int32 = 0
    results: list[AclCreationResult] = []
