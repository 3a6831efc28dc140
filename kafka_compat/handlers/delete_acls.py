"""DeleteAcls (API key 31): delete matching ACLs. Without an authorizer, it fails with SECURITY_DISABLED."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.acl_requests import (
    codes_of,
    entry_fields,
    filter_of,
    pattern_fields,
    refuse_unknown,
    require_acls,
)
from kafka_compat.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafka_compat.security.acls.keeper import Deleted


@handler(0, 3)
async def delete_acls(ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse | None:
    for item in request.filters:
        refuse_unknown(ctx, *codes_of(item))
    acls = require_acls(ctx)
    filters = [filter_of(item, ctx.api_version) for item in request.filters]
    deleted = await acls.delete(filters, await ctx.long_work.begin())
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_message=None, matching_acls=[_matching(item) for item in some])
            for some in deleted
        ]
    )


def _matching(deleted: Deleted) -> DeleteAclsMatchingAcl:
    (pattern, entry), error = deleted
    matching = DeleteAclsMatchingAcl(error_message=None, **pattern_fields(pattern), **entry_fields(entry))
    if error is not None:
        matching.error_code, matching.error_message = error.code, error.message or None
    return matching
