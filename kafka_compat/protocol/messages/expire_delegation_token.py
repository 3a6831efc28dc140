"""ExpireDelegationToken (API key 40): change the expiry of a token, or expire it immediately (KIP-48)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """A negative period expires the token immediately."""

    hmac: s.Bytes = b""
    expiry_time_period_ms: s.Int64 = 0


@s.response(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """`expiry_timestamp_ms` is in ms since the epoch."""

    error_code: s.Int16 = 0
    expiry_timestamp_ms: s.Int64 = 0
    throttle_time_ms: s.Int32 = 0
