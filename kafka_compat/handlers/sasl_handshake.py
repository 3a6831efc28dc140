"""SaslHandshake (key 17): which SASL mechanism comes next. No listener authenticates anybody, so it comes at
the wrong time: ILLEGAL_SASL_STATE, and the connection lives, as with Kafka on PLAINTEXT.
"""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@handler(ApiKey.SASL_HANDSHAKE, 0, 1)
def sasl_handshake(ctx: RequestContext[object], request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
