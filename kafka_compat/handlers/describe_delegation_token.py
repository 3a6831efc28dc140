"""DescribeDelegationToken (key 41, KIP-48). Tokens are for authenticated clients only, and no listener
authenticates any."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


@handler(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3)
def describe_delegation_token(
    ctx: RequestContext[object], request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
