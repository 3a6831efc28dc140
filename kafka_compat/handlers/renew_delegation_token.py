"""RenewDelegationToken (API key 39, KIP-48): extend a token, at the request of its owner or a renewer."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.handlers.token_requests import tokens_for
from kafka_compat.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@handler(0, 2)
async def renew_delegation_token(
    ctx: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=-1)
    try:
        response.expiry_timestamp_ms = await tokens_for(ctx).renew(
            ctx.principal, bytes(request.hmac), request.renew_period_ms
        )
    except Exception as error:
        response.error_code = as_kafka_error(error, "Renewing a delegation token").code
    return response
