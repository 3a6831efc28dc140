"""DescribeUserScramCredentials (key 50, KIP-554). No listener asks for passwords: SECURITY_DISABLED."""

from __future__ import annotations

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


@handler(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
def describe_user_scram_credentials(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No listener of this broker uses SASL/SCRAM."
    )
