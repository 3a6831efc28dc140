"""DescribeAcls (key 29). Without an authorizer: SECURITY_DISABLED, which tools take as "no ACLs here"."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@handler(ApiKey.DESCRIBE_ACLS, 0, 3)
def describe_acls(ctx: RequestContext[object], request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
