"""DescribeConfigs (API key 32): settings of topics, brokers and groups, with the sources of their values."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class DescribeConfigsResource:
    """If `configuration_keys` is null, all settings are requested. For resource_type, see AlterConfigs."""

    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    configuration_keys: list[s.String] | None = []


@s.request(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    """Version 1 adds synonyms, and version 3 adds documentation."""

    resources: list[DescribeConfigsResource] = []
    include_synonyms: s.Bool = s.field("1+", default=False)
    include_documentation: s.Bool = s.field("3+", default=False)


@s.struct
class DescribeConfigsSynonym:
    """A source of a setting's value. Sources are in order of precedence, the highest first."""

    name: s.String = s.field("1+", default="")
    value: s.NullableString = s.field("1+", default="")
    source: s.Int8 = s.field("1+", default=0)


@s.struct
class DescribeConfigsResourceResult:
    """One setting. config_source is 1 (topic), 2 (broker), 3 (cluster-wide), 4 (server.properties), 5
    (default), 6 (broker logger), 7 (client metrics) or 8 (group). config_type is 1 (boolean), 2 (string), 3
    (int), 4 (short), 5 (long), 6 (double), 7 (list), 8 (class) or 9 (password). The value of a sensitive
    setting is null.
    """

    name: s.String = ""
    value: s.NullableString = ""
    read_only: s.Bool = False
    is_default: s.Bool = s.field("0", default=False)
    config_source: s.Int8 = s.field("1+", default=-1)
    is_sensitive: s.Bool = False
    synonyms: list[DescribeConfigsSynonym] = s.field("1+", default=[])
    config_type: s.Int8 = s.field("3+", default=0)
    documentation: s.NullableString = s.field("3+", default="")


@s.struct
class DescribeConfigsResult:
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    resource_type: s.Int8 = 0
    resource_name: s.String = ""
    configs: list[DescribeConfigsResourceResult] = []


@s.response(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    """Version 0 has is_default instead of the source."""

    throttle_time_ms: s.Int32 = 0
    results: list[DescribeConfigsResult] = []
