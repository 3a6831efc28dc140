"""SaslAuthenticate (API key 36): one step of a SASL exchange (KIP-152)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: s.Bytes = b""


@s.response(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """`auth_bytes` is a token of the SASL mechanism. `session_lifetime_ms` (version 1) is the time until
    reauthentication is required, or 0 for never (KIP-368).
    """

    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    auth_bytes: s.Bytes = b""
    session_lifetime_ms: s.Int64 = s.field("1+", default=0)
