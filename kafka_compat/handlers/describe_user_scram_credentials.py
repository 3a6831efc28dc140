"""DescribeUserScramCredentials (API key 50, KIP-554): the SCRAM mechanisms of users, without secrets."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 0)
async def describe_user_scram_credentials(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    require_cluster(ctx, Operation.DESCRIBE)
    users = [item.name for item in request.users or ()]
    try:
        with store_errors_mapped():
            found = await ctx.services.scram_credentials.describe(users)
    except KafkaError as error:
        return DescribeUserScramCredentialsResponse(
            error_code=error.code, error_message=error.message, results=[]
        )
    results = []
    for user, iterations, refused in found:
        result = DescribeUserScramCredentialsResult(
            user=user,
            error_message=None,
            credential_infos=[
                CredentialInfo(mechanism=mechanism, iterations=count)
                for mechanism, count in iterations.items()
            ],
        )
        if refused is not None:
            result.error_code, result.error_message = refused.code, refused.message
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)
