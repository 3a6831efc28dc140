"""SaslAuthenticate (API key 36): one step of a SASL exchange (KIP-152)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bytes, Int16, Int64, NullableString, field, request, response


@request(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """Bytes of the SASL mechanism."""

    auth_bytes: Bytes = b""


@response(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """Bytes of the SASL mechanism. `session_lifetime_ms` (version 1): when to authenticate again, 0 never
    (KIP-368).
    """

    error_code: Int16 = 0
    error_message: NullableString = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = field("1+", default=0)
