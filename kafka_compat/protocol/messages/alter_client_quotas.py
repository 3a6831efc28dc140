"""AlterClientQuotas (API key 49): set and remove quotas of users, clients and addresses (KIP-546)."""

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
    """One part of what a quota applies to: entity_type is user, client-id or ip; a null name is the
    default.
    """

    entity_type: String = ""
    entity_name: NullableString = ""


@struct
class OpData:
    """Sets or removes one quota, such as producer_byte_rate."""

    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@struct
class EntryData:
    """Changes to the quotas of one entity."""

    entity: list[EntityData] = []
    ops: list[OpData] = []


@request(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """`validate_only` checks the changes and applies none."""

    entries: list[EntryData] = []
    validate_only: Bool = False


@struct
class AlterClientQuotasResponseEntryData:
    """What became of the changes of one entity."""

    error_code: Int16 = 0
    error_message: NullableString = ""
    entity: list[EntityData] = []


@response(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """Entries answer those of the request, in any order."""

    throttle_time_ms: Int32 = 0
    entries: list[AlterClientQuotasResponseEntryData] = []
