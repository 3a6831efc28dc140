"""ListConfigResources (API key 74): names of resources that have settings (KIP-1142)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """Version 0 requests client-metrics resources. Version 1 requests the listed types (empty: all types)."""

    resource_types: list[s.Int8] = s.field("1+", default=[])


@s.struct
class ConfigResource:
    """A resource that has settings. resource_type has the same values as in AlterConfigs."""

    resource_name: s.String = ""
    resource_type: s.Int8 = s.field("1+", default=16)


@s.response(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """In version 0, all resources are client-metrics resources."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    config_resources: list[ConfigResource] = []
