"""AlterConfigs (API key 33): replace all dynamic settings of a resource."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    request,
    response,
    struct,
)


@struct
class AlterableConfig:
    """One setting and its new value; null removes it."""

    name: String = ""
    value: NullableString = ""


@struct
class AlterConfigsResource:
    """All dynamic settings of one resource: those not named fall back to their defaults.
    resource_type: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
    """

    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = []


@request(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """Superseded by IncrementalAlterConfigs, which does not lose what others have set."""

    resources: list[AlterConfigsResource] = []
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: Int16 = 0
    error_message: NullableString = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@response(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """Resources are answered one by one."""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
