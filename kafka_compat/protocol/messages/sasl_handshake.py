"""SaslHandshake (API key 17): choose a SASL mechanism."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, String, request, response


@request(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """After version 0 the SASL exchange goes on without frames of Kafka, after version 1 in
    SaslAuthenticate.
    """

    mechanism: String = ""


@response(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """The mechanisms that the broker has."""

    error_code: Int16 = 0
    mechanisms: list[String] = []
