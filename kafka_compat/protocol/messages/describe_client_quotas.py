"""DescribeClientQuotas (API key 48): list quotas that match a filter (KIP-546)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class ComponentData:
    """One condition of the filter. The match type is 0 (exact name), 1 (the default) or 2 (any name)."""

    entity_type: s.String = ""
    match_type: s.Int8 = 0
    match: s.NullableString = ""


@s.request(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """`strict` excludes entities with components that the filter does not name."""

    components: list[ComponentData] = []
    strict: s.Bool = False


@s.struct
class EntityData:
    """One component of a quota entity. A null name means the default."""

    entity_type: s.String = ""
    entity_name: s.NullableString = ""


@s.struct
class ValueData:
    key: s.String = ""
    value: s.Float64 = 0.0


@s.struct
class EntryData:
    entity: list[EntityData] = []
    values: list[ValueData] = []


@s.response(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """`entries` is null if there is an error."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    entries: list[EntryData] | None = []
