"""AlterConfigs (API key 33): replace all dynamic settings of a resource."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class AlterableConfig:
    """One setting and its new value. A null value is rejected."""

    name: s.String = ""
    value: s.NullableString = ""


@s.struct
class AlterConfigsResource:
    """All dynamic settings of one resource. Settings that are missing are reset to their defaults.
    resource_type is 2 (topic), 4 (broker), 8 (broker logger), 16 (client metrics) or 32 (group).
    """

    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    configs: list[AlterableConfig] = []


@s.request(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """A request superseded by IncrementalAlterConfigs, which keeps settings that it does not contain."""

    resources: list[AlterConfigsResource] = []
    validate_only: s.Bool = False


@s.struct
class AlterConfigsResourceResponse:
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    resource_type: s.Int8 = 0
    resource_name: s.String = ""


@s.response(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    throttle_time_ms: s.Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
