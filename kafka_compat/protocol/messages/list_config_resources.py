"""ListConfigResources (API key 74)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int8, Int16, Int32, String, field, request, response, struct


@request(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: list[Int8] = field("1+", default=[])


@struct
class ConfigResource:
    resource_name: String = ""
    resource_type: Int8 = field("1+", default=16)


@response(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
