"""CreateDelegationToken (key 38, KIP-48). Tokens are for authenticated clients only, and no listener
authenticates any."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


@handler(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3)
def create_delegation_token(
    ctx: RequestContext[object], request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    # A client without authentication is Kafka's User:ANONYMOUS.
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type="User",
        principal_name="ANONYMOUS",
        token_requester_principal_type="User",
        token_requester_principal_name="ANONYMOUS",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
