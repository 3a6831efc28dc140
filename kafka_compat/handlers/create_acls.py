"""CreateAcls (API key 30): add ACLs. Without an authorizer, each ACL fails with SECURITY_DISABLED."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.acl_requests import member, refuse_unknown, require_acls
from kafka_compat.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafka_compat.security.acls.bindings import Binding, Entry, Pattern, PatternType, Permission
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType


@handler(0, 3)
async def create_acls(ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse | None:
    for item in request.creations:
        codes = item.resource_type, item.resource_pattern_type, item.operation, item.permission_type
        refuse_unknown(ctx, *codes)
    acls = require_acls(ctx)
    bindings = [_binding(item) for item in request.creations]
    outcomes = [_refusal(binding) for binding in bindings]
    accepted = [index for index, refusal in enumerate(outcomes) if refusal is None]
    created = await acls.create([bindings[index] for index in accepted])
    for index, outcome in zip(accepted, created, strict=True):
        outcomes[index] = outcome
    return CreateAclsResponse(results=[_result(outcome) for outcome in outcomes])


def _binding(item: AclCreation) -> Binding:
    pattern = Pattern(
        member(ResourceType, item.resource_type),
        item.resource_name,
        member(PatternType, item.resource_pattern_type),
    )
    entry = Entry(
        item.principal, item.host, member(Operation, item.operation), member(Permission, item.permission_type)
    )
    if (
        pattern.resource_type is ResourceType.ANY
        or pattern.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or entry.operation is Operation.ANY
        or entry.permission is Permission.ANY
    ):
        # As in Kafka, every ACL in the request fails with this message.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "ANY and MATCH are valid in filters only")
    return Binding(pattern, entry)


def _refusal(binding: Binding) -> KafkaError | None:
    kind, name, _ = binding.pattern
    if kind is ResourceType.CLUSTER and name != CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return KafkaError(ErrorCode.INVALID_REQUEST, problem)
    return KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name") if not name else None


def _result(outcome: KafkaError | None) -> AclCreationResult:
    if outcome is None:
        return AclCreationResult(error_message=None)
    is_known = outcome.code is not ErrorCode.UNKNOWN_SERVER_ERROR
    return AclCreationResult(error_code=outcome.code, error_message=outcome.message if is_known else None)
