"""ExpireDelegationToken (API key 40, KIP-48): make a token expire earlier or immediately, at the request of
its owner or a renewer.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.handlers.token_requests import tokens_for
from kafka_compat.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@handler(0, 2)
async def expire_delegation_token(
    ctx: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=-1)
    try:
        response.expiry_timestamp_ms = await tokens_for(ctx).expire(
            ctx.principal, bytes(request.hmac), request.expiry_time_period_ms
        )
    except Exception as error:
        response.error_code = as_kafka_error(error, "Expiring a delegation token").code
    return response
