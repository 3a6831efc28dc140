"""IncrementalAlterConfigs (API key 44): change individual dynamic settings of a resource (KIP-339)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_configs import AlterConfigsResourceResponse


@s.struct
class AlterableConfig:
    """One change. config_operation: 0 set, 1 delete, 2 append to a list, 3 subtract from a list."""

    name: s.String = ""
    config_operation: s.Int8 = 0
    value: s.NullableString = ""


@s.struct
class AlterConfigsResource:
    """The changes to one resource: all or none are applied. resource_type has the values of AlterConfigs."""

    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    configs: list[AlterableConfig] = []


@s.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """`validate_only`: check the changes without applying them."""

    resources: list[AlterConfigsResource] = []
    validate_only: s.Bool = False


@s.response(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: s.Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
