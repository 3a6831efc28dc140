"""AlterClientQuotas (API key 49)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Float64,
    Int16,
    Int32,
    NullableString,
    String,
    request,
    response,
    struct,
)


@struct
class EntityData:
    entity_type: String = ""
    entity_name: NullableString = ""


@struct
class OpData:
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@struct
class EntryData:
    entity: list[EntityData] = []
    ops: list[OpData] = []


@request(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: list[EntryData] = []
    validate_only: Bool = False


@struct
class AlterClientQuotasResponseEntryData:
    error_code: Int16 = 0
    error_message: NullableString = ""
    entity: list[EntityData] = []


@response(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: Int32 = 0
    entries: list[AlterClientQuotasResponseEntryData] = []
