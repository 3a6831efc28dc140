"""CreateDelegationToken (API key 38, KIP-48): create a token for the client or, with the CREATE_TOKENS
permission, for a different user (KIP-373).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import allows
from kafka_compat.handlers.token_requests import may_ask
from kafka_compat.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal

_NEVER_MS = -1


@handler(0, 3)
async def create_delegation_token(
    ctx: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = Principal(*ctx.principal)
    owner = requester
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            # Return the same error as Kafka, which throws an exception if the owner's type is missing.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        owner = Principal(request.owner_principal_type, request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=_NEVER_MS,
        expiry_timestamp_ms=_NEVER_MS,
        max_timestamp_ms=_NEVER_MS,
    )
    try:
        await _create(ctx, request, owner, requester, response)
    except Exception as error:
        response.error_code = as_kafka_error(error, f"Creating a delegation token for {owner}").code
    return response


async def _create(
    ctx: RequestContext,
    request: CreateDelegationTokenRequest,
    owner: Principal,
    requester: Principal,
    response: CreateDelegationTokenResponse,
) -> None:
    if not may_ask(ctx):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if owner != requester and not allows(ctx, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    if any(renewer.principal_type != "User" for renewer in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    tokens = ctx.services.delegation_tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    renewers = tuple(Principal(item.principal_type, item.principal_name) for item in request.renewers)
    token, secret = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = secret
