"""SaslHandshake (key 17): which SASL mechanism comes next (KIP-43). Where it comes at the wrong time, as on a
listener that authenticates nobody: ILLEGAL_SASL_STATE, and the connection lives, as with Kafka.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafka_compat.protocol.pending import PENDING


@handler(ApiKey.SASL_HANDSHAKE, 0, 1)
def sasl_handshake(ctx: RequestContext[object], request: SaslHandshakeRequest) -> Any:
    connection = ctx.connection
    exchange = connection.authentication
    if exchange is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    from kafka_compat.security.sasl.exchange import UnexpectedRequest, UnsupportedMechanism

    if exchange.is_complete and not exchange.begin_again():
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    delay_ms = exchange.offer.failure_delay_ms
    try:
        exchange.handshake(request.mechanism, tokens_are_bare=ctx.api_version == 0)
    except UnsupportedMechanism as error:
        refusal = SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=exchange.mechanisms
        )
        # As Kafka: whoever was in is sent away without a word.
        answer = None if exchange.is_again else partial(ctx.respond, refusal)
        connection.turn_away(str(error), delay_ms, answer)
        return PENDING
    except UnexpectedRequest as error:
        connection.turn_away(str(error), delay_ms)
        return PENDING
    return SaslHandshakeResponse(mechanisms=exchange.mechanisms)
