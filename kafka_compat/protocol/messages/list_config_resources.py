"""ListConfigResources (API key 74): names of resources that have settings (KIP-1142)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int8, Int16, Int32, String, field, request, response, struct


@request(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """Version 0 asks for client metrics; version 1 for the types that it names, none for all."""

    resource_types: list[Int8] = field("1+", default=[])


@struct
class ConfigResource:
    """One resource; types as in AlterConfigs."""

    resource_name: String = ""
    resource_type: Int8 = field("1+", default=16)


@response(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """In version 0 all resources are client metrics."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
