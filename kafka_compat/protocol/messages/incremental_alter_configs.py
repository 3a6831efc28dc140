"""IncrementalAlterConfigs (API key 44): change individual dynamic settings of a resource (KIP-339)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_configs import AlterConfigsResourceResponse


@s.struct
class AlterableConfig:
    """A change to one setting. config_operation is 0 (set), 1 (delete), 2 (append) or 3 (subtract)."""

    name: s.String = ""
    config_operation: s.Int8 = 0
    value: s.NullableString = ""


@s.struct
class AlterConfigsResource:
    """Changes to a resource, applied atomically. resource_type has the same values as in AlterConfigs."""

    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    configs: list[AlterableConfig] = []


@s.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """With `validate_only`, the changes are checked but not applied."""

    resources: list[AlterConfigsResource] = []
    validate_only: s.Bool = False


@s.response(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: s.Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
