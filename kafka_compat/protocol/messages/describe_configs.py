"""DescribeConfigs (API key 32)."""

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
    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: list[String] | None = []


@request(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = []
    include_synonyms: Bool = field("1+", default=False)
    include_documentation: Bool = field("3+", default=False)


@struct
class DescribeConfigsSynonym:
    name: String = field("1+", default="")
    value: NullableString = field("1+", default="")
    source: Int8 = field("1+", default=0)


@struct
class DescribeConfigsResourceResult:
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
    error_code: Int16 = 0
    error_message: NullableString = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = []


@response(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
