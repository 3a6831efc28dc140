"""SaslAuthenticate (key 36): one step of a SASL exchange (KIP-152). No listener authenticates anybody, so it
comes at the wrong time: ILLEGAL_SASL_STATE, and the connection lives, as with Kafka on PLAINTEXT.
"""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


@handler(ApiKey.SASL_AUTHENTICATE, 0, 2)
def sasl_authenticate(
    ctx: RequestContext[object], request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
