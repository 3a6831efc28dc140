"""SaslAuthenticate (key 36): one step of a SASL exchange (KIP-152). Where it comes at the wrong time, as on a
listener that authenticates nobody: ILLEGAL_SASL_STATE, and the connection lives, as with Kafka.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_compat.protocol.pending import PENDING


@handler(ApiKey.SASL_AUTHENTICATE, 0, 2)
def sasl_authenticate(ctx: RequestContext[object], request: SaslAuthenticateRequest) -> Any:
    connection = ctx.connection
    exchange = connection.authentication
    if exchange is None:
        return _too_late()
    from kafka_compat.security.sasl.exchange import UnexpectedRequest
    from kafka_compat.security.sasl.mechanism import Refused

    if exchange.is_complete:
        return _too_late()
    delay_ms = exchange.offer.failure_delay_ms
    try:
        answer = exchange.token(bytes(request.auth_bytes))
    except Refused as refused:
        refusal = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=exchange.refusal_told(refused)
        )
        connection.turn_away(str(refused), delay_ms, partial(ctx.respond, refusal))
        return PENDING
    except UnexpectedRequest as error:
        connection.turn_away(str(error), delay_ms)
        return PENDING
    response = SaslAuthenticateResponse(auth_bytes=answer or b"")
    if exchange.is_complete:
        response.session_lifetime_ms = exchange.session_lifetime_ms
        assert connection.entrance is not None
        connection.entrance.passed(connection, exchange)
    return response


def _too_late() -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
