"""RenewDelegationToken (API key 39): extend a token within its maximum lifetime (KIP-48)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bytes, Int16, Int32, Int64, request, response


@request(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest:
    """`hmac` names the token; the period counts from now."""

    hmac: Bytes = b""
    renew_period_ms: Int64 = 0


@response(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse:
    """The expiry is in ms since the epoch."""

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
