"""DescribeDelegationToken (API key 41, KIP-48): return tokens visible to the client, with their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import KafkaError
from kafka_compat.handlers.authorization import allows
from kafka_compat.handlers.token_requests import tokens_for
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from kafka_compat.security.tokens.delegation_token import is_asked_for

if TYPE_CHECKING:
    from kafka_compat.security.tokens.delegation_token import Token
    from kafka_compat.security.tokens.keeper import Issued


@handler(0, 3)
def describe_delegation_token(
    ctx: RequestContext, request: DescribeDelegationTokenRequest
) -> Steps[DescribeDelegationTokenResponse]:
    response = DescribeDelegationTokenResponse()
    try:
        tokens = tokens_for(ctx)
    except KafkaError as error:
        response.error_code = error.code
        return response
    owners: set[Principal] | None = None
    if request.owners is not None:
        owners = {Principal(item.principal_type, item.principal_name) for item in request.owners}
    for some in batched(tokens.issued()):
        for issued in some:
            if is_asked_for(issued.token, owners) and _may_know(ctx, issued.token):
                response.tokens.append(_described(issued))
        yield None
    return response


def _may_know(ctx: RequestContext, token: Token) -> bool:
    return (
        token.concerns(ctx.principal)
        or allows(ctx, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or allows(ctx, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _described(issued: Issued) -> DescribedDelegationToken:
    token, secret = issued
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=secret,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in token.renewers
        ],
    )
