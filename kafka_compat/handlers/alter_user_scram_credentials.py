"""AlterUserScramCredentials (API key 51, KIP-554): set and delete users' SCRAM credentials."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kafka_compat.security.authorizer import Operation
from kafka_compat.security.scram_credential_store import Deletion, Upsertion


@handler(0, 0)
async def alter_user_scram_credentials(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    require_cluster(ctx, Operation.ALTER)
    deletions = [Deletion(item.name, item.mechanism) for item in request.deletions]
    upsertions = [
        Upsertion(item.name, item.mechanism, item.iterations, bytes(item.salt), bytes(item.salted_password))
        for item in request.upsertions
    ]
    results = []
    for user, error in (await ctx.services.scram_credentials.alter(deletions, upsertions)).items():
        result = AlterUserScramCredentialsResult(user=user, error_message=None)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return AlterUserScramCredentialsResponse(results=results)
