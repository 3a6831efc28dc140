"""CreateDelegationToken (API key 38)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bytes,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class CreatableRenewers:
    principal_type: String = ""
    principal_name: String = ""


@request(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: NullableString = field("3+", default="")
    owner_principal_name: NullableString = field("3+", default="")
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: Int64 = 0


@response(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = field("3+", default="")
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0
