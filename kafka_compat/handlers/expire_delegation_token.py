"""ExpireDelegationToken (key 40, KIP-48). Tokens are for authenticated clients only, and no listener
authenticates any."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@handler(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2)
def expire_delegation_token(
    ctx: RequestContext[object], request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
