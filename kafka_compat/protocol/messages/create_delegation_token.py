"""CreateDelegationToken (API key 38): issue a token that stands for a user (KIP-48)."""

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
    """A principal that may renew the token besides its owner."""

    principal_type: String = ""
    principal_name: String = ""


@request(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    """`max_lifetime_ms` -1 is the longest that the broker allows. Version 3 asks on behalf of another owner
    (KIP-373).
    """

    owner_principal_type: NullableString = field("3+", default="")
    owner_principal_name: NullableString = field("3+", default="")
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: Int64 = 0


@response(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token: its id, and the secret `hmac`. Timestamps are in ms since the epoch."""

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
