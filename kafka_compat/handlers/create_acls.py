"""CreateAcls (key 30). Without an authorizer: SECURITY_DISABLED for each."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


@handler(ApiKey.CREATE_ACLS, 0, 3)
def create_acls(ctx: RequestContext[object], request: CreateAclsRequest) -> CreateAclsResponse:
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=[refused for _ in request.creations])
