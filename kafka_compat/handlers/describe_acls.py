"""DescribeAcls (API key 29): list ACLs. Without an authorizer, it fails with SECURITY_DISABLED."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.acl_requests import (
    codes_of,
    entry_fields,
    filter_of,
    pattern_fields,
    refuse_unknown,
)
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafka_compat.security.authorizer import Operation

_DISABLED = "No Authorizer is configured on the broker"


@handler(0, 3)
def describe_acls(ctx: RequestContext, request: DescribeAclsRequest) -> Steps[DescribeAclsResponse | None]:
    refuse_unknown(ctx, *codes_of(request))
    require_cluster(ctx, Operation.DESCRIBE)
    acls = ctx.services.acls
    if acls is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=_DISABLED)
    wanted = filter_of(request, ctx.api_version)
    response = DescribeAclsResponse(error_message=None)
    for some in batched(acls.candidates(wanted)):
        for pattern, entries in some:
            if not wanted.pattern.matches(pattern):
                continue
            found = [AclDescription(**entry_fields(item)) for item in entries if wanted.entry.matches(item)]
            if found:
                response.resources.append(DescribeAclsResource(**pattern_fields(pattern), acls=found))
        yield None
    return response
