"""DescribeClientQuotas (API key 48): list quotas that match a filter (KIP-546)."""

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
    """One condition. match_type: 0 this name, 1 the default, 2 any name."""

    entity_type: String = ""
    match_type: Int8 = 0
    match: NullableString = ""


@request(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """`strict` leaves out entities that have further parts."""

    components: list[ComponentData] = []
    strict: Bool = False


@struct
class EntityData:
    """One part of what a quota applies to; a null name is the default."""

    entity_type: String = ""
    entity_name: NullableString = ""


@struct
class ValueData:
    """One quota."""

    key: String = ""
    value: Float64 = 0.0


@struct
class EntryData:
    """The quotas of one entity."""

    entity: list[EntityData] = []
    values: list[ValueData] = []


@response(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """`entries` is null with an error."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""
    entries: list[EntryData] | None = []
