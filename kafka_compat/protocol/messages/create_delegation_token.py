"""CreateDelegationToken (API key 38): issue a token that authenticates a user (KIP-48)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class CreatableRenewers:
    """A principal, other than the owner, that may renew the token."""

    principal_type: s.String = ""
    principal_name: s.String = ""


@s.request(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    """`max_lifetime_ms` -1 means the broker's maximum. Version 3 can name a different owner (KIP-373)."""

    owner_principal_type: s.NullableString = s.field("3+", default="")
    owner_principal_name: s.NullableString = s.field("3+", default="")
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: s.Int64 = 0


@s.response(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token: its ID, and the secret `hmac`. Timestamps are in ms since the epoch."""

    error_code: s.Int16 = 0
    principal_type: s.String = ""
    principal_name: s.String = ""
    token_requester_principal_type: s.String = s.field("3+", default="")
    token_requester_principal_name: s.String = s.field("3+", default="")
    issue_timestamp_ms: s.Int64 = 0
    expiry_timestamp_ms: s.Int64 = 0
    max_timestamp_ms: s.Int64 = 0
    token_id: s.String = ""
    hmac: s.Bytes = b""
    throttle_time_ms: s.Int32 = 0
