"""IncrementalAlterConfigs (API key 44): change single dynamic settings of a resource (KIP-339)."""

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
    """One change. config_operation: 0 set, 1 delete, 2 append to and 3 subtract from a list."""

    name: String = ""
    config_operation: Int8 = 0
    value: NullableString = ""


@struct
class AlterConfigsResource:
    """The changes of one resource: made all or none. resource_type as in AlterConfigs."""

    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = []


@request(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """`validate_only` checks the changes and applies none."""

    resources: list[AlterConfigsResource] = []
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: Int16 = 0
    error_message: NullableString = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@response(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """Resources are answered one by one."""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
