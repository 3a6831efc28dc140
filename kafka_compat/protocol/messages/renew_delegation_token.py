"""RenewDelegationToken (API key 39): extend a token within its maximum lifetime (KIP-48)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest:
    """`hmac` identifies the token. The renewal period begins now."""

    hmac: s.Bytes = b""
    renew_period_ms: s.Int64 = 0


@s.response(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse:
    """`expiry_timestamp_ms` is in ms since the epoch."""

    error_code: s.Int16 = 0
    expiry_timestamp_ms: s.Int64 = 0
    throttle_time_ms: s.Int32 = 0
