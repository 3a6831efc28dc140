"""SaslHandshake (API key 17): choose the SASL mechanism (KIP-43). On a listener without SASL, or if a client
may not reauthenticate, the request gets ILLEGAL_SASL_STATE, and the connection stays open, as in Kafka.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


@handler(0, 1)
def sasl_handshake(ctx: ListenerContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse | Deferred:
    authentication = ctx.caller.session.authentication
    if authentication is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    exchange = authentication.exchange
    from kafka_compat.security.sasl.exchange import UnexpectedRequest, UnsupportedMechanism

    if exchange.is_complete and not exchange.begin_again():
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    deferred = Deferred()
    try:
        exchange.handshake(request.mechanism, tokens_are_bare=ctx.api_version == 0)
    except UnsupportedMechanism as error:
        refusal = SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=exchange.mechanisms
        )
        # As in Kafka, send no response to a client that was already authenticated.
        authentication.refused(str(error), None if exchange.is_again else partial(deferred.complete, refusal))
        return deferred
    except UnexpectedRequest as error:
        authentication.refused(str(error))
        return deferred
    return SaslHandshakeResponse(mechanisms=exchange.mechanisms)
