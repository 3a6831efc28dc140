"""SaslHandshake (API key 17): choose a SASL mechanism."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """After version 0, the SASL exchange continues without Kafka frames. After version 1, it continues in
    SaslAuthenticate requests.
    """

    mechanism: s.String = ""


@s.response(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """The mechanisms that the broker supports."""

    error_code: s.Int16 = 0
    mechanisms: list[s.String] = []
