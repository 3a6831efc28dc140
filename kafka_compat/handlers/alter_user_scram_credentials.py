"""AlterUserScramCredentials (key 51, KIP-554). No listener asks for passwords: SECURITY_DISABLED for each
user."""

from __future__ import annotations

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


@handler(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def alter_user_scram_credentials(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(
        [item.name for item in request.deletions] + [item.name for item in request.upsertions]
    )
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=ErrorCode.SECURITY_DISABLED,
                error_message="No listener of this broker uses SASL/SCRAM.",
            )
            for user in users
        ]
    )
