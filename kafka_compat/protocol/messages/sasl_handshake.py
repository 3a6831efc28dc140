"""SaslHandshake (API key 17): choose a SASL mechanism."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """After a version 0 handshake, SASL tokens are sent as separate frames, without request headers. After a
    version 1 handshake, they are sent in SaslAuthenticate requests.
    """

    mechanism: s.String = ""


@s.response(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """The mechanisms that the broker supports."""

    error_code: s.Int16 = 0
    mechanisms: list[s.String] = []
