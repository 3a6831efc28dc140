"""DescribeClientQuotas (API key 48)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Float64,
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
class ComponentData:
    entity_type: String = ""
    match_type: Int8 = 0
    match: NullableString = ""


@request(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: list[ComponentData] = []
    strict: Bool = False


@struct
class EntityData:
    entity_type: String = ""
    entity_name: NullableString = ""


@struct
class ValueData:
    key: String = ""
    value: Float64 = 0.0


@struct
class EntryData:
    entity: list[EntityData] = []
    values: list[ValueData] = []


@response(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""
    entries: list[EntryData] | None = []
