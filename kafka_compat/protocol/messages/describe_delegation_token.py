"""DescribeDelegationToken (API key 41): list delegation tokens, filtered by owner (KIP-48)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class DescribeDelegationTokenOwner:
    """An owner whose tokens are requested."""

    principal_type: s.String = ""
    principal_name: s.String = ""


@s.request(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """If `owners` is null, all tokens that the caller may see are requested."""

    owners: list[DescribeDelegationTokenOwner] | None = []


@s.struct
class DescribedDelegationTokenRenewer:
    """A principal that may renew the token."""

    principal_type: s.String = ""
    principal_name: s.String = ""


@s.struct
class DescribedDelegationToken:
    """A delegation token. Timestamps are in ms since the epoch."""

    principal_type: s.String = ""
    principal_name: s.String = ""
    token_requester_principal_type: s.String = s.field("3+", default="")
    token_requester_principal_name: s.String = s.field("3+", default="")
    issue_timestamp: s.Int64 = 0
    expiry_timestamp: s.Int64 = 0
    max_timestamp: s.Int64 = 0
    token_id: s.String = ""
    hmac: s.Bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


@s.response(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """Version 3 adds the requester of a token (KIP-373)."""

    error_code: s.Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: s.Int32 = 0
