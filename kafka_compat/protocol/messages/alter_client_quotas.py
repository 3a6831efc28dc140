"""AlterClientQuotas (API key 49): set and remove quotas of users, clients and addresses (KIP-546)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class EntityData:
    """One component of a quota entity. Its type is user, client-id or ip. A null name means the default."""

    entity_type: s.String = ""
    entity_name: s.NullableString = ""


@s.struct
class OpData:
    """One quota to set or remove, such as producer_byte_rate."""

    key: s.String = ""
    value: s.Float64 = 0.0
    remove: s.Bool = False


@s.struct
class EntryData:
    """Changes to the quotas of one entity."""

    entity: list[EntityData] = []
    ops: list[OpData] = []


@s.request(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """With `validate_only`, the changes are checked but not applied."""

    entries: list[EntryData] = []
    validate_only: s.Bool = False


@s.struct
class AlterClientQuotasResponseEntryData:
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    entity: list[EntityData] = []


@s.response(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """One result for each entry of the request, in any order."""

    throttle_time_ms: s.Int32 = 0
    entries: list[AlterClientQuotasResponseEntryData] = []
