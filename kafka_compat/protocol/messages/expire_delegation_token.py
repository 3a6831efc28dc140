"""ExpireDelegationToken (API key 40): change the expiry of a token, or end it now (KIP-48)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bytes, Int16, Int32, Int64, request, response


@request(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """A negative period ends the token now."""

    hmac: Bytes = b""
    expiry_time_period_ms: Int64 = 0


@response(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """The expiry is in ms since the epoch."""

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
