"""SaslAuthenticate (API key 36): one step of a SASL exchange (KIP-152). After authentication or on a listener
without SASL, a request gets ILLEGAL_SASL_STATE, and the connection stays open, as in Kafka.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


@handler(0, 2)
def sasl_authenticate(
    ctx: ListenerContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Deferred:
    authentication = ctx.caller.session.authentication
    if authentication is None:
        return _too_late()
    exchange = authentication.exchange
    from kafka_compat.security.sasl.exchange import UnexpectedRequest
    from kafka_compat.security.sasl.mechanism import Refused

    if exchange.is_complete:
        return _too_late()
    deferred = Deferred()
    try:
        answer = exchange.token(bytes(request.auth_bytes))
    except Refused as refused:
        refusal = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=exchange.client_message(refused)
        )
        authentication.refused(str(refused), partial(deferred.complete, refusal))
        return deferred
    except UnexpectedRequest as error:
        authentication.refused(str(error))
        return deferred
    response = SaslAuthenticateResponse(auth_bytes=answer or b"")
    if exchange.is_complete:
        response.session_lifetime_ms = exchange.session_lifetime_ms
        authentication.passed()
    return response


def _too_late() -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
