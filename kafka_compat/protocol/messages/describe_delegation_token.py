"""DescribeDelegationToken (API key 41): list tokens by owner (KIP-48)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bytes, Int16, Int32, Int64, String, field, request, response, struct


@struct
class DescribeDelegationTokenOwner:
    """An owner whose tokens are asked for."""

    principal_type: String = ""
    principal_name: String = ""


@request(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """Null `owners` asks for all tokens that the caller may see."""

    owners: list[DescribeDelegationTokenOwner] | None = []


@struct
class DescribedDelegationTokenRenewer:
    """A principal that may renew the token."""

    principal_type: String = ""
    principal_name: String = ""


@struct
class DescribedDelegationToken:
    """One token. Timestamps are in ms since the epoch."""

    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = field("3+", default="")
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


@response(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """Version 3 tells who requested a token on behalf of its owner (KIP-373)."""

    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: Int32 = 0
