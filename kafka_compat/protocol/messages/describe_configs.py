"""DescribeConfigs (API key 32): settings of topics, brokers and groups with their sources."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
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
class DescribeConfigsResource:
    """Null `configuration_keys` asks for all settings. resource_type as in AlterConfigs."""

    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: list[String] | None = []


@request(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    """Synonyms since version 1, documentation since version 3."""

    resources: list[DescribeConfigsResource] = []
    include_synonyms: Bool = field("1+", default=False)
    include_documentation: Bool = field("3+", default=False)


@struct
class DescribeConfigsSynonym:
    """A setting that takes part in the value, the one that wins first."""

    name: String = field("1+", default="")
    value: NullableString = field("1+", default="")
    source: Int8 = field("1+", default=0)


@struct
class DescribeConfigsResourceResult:
    """One setting. config_source: 1 topic, 2 broker, 3 all brokers, 4 server.properties, 5 default, 6 broker
    logger, 7 client metrics, 8 group. config_type: 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7
    list, 8 class, 9 password. The value of a sensitive setting is null.
    """

    name: String = ""
    value: NullableString = ""
    read_only: Bool = False
    is_default: Bool = field("0", default=False)
    config_source: Int8 = field("1+", default=-1)
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = field("1+", default=[])
    config_type: Int8 = field("3+", default=0)
    documentation: NullableString = field("3+", default="")


@struct
class DescribeConfigsResult:
    """The settings of one resource."""

    error_code: Int16 = 0
    error_message: NullableString = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = []


@response(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    """Version 0 alone tells is_default in place of the source."""

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
