"""Authorization checks of the handlers, as in Kafka's KafkaApis (KIP-11).

Without an authorizer, every request is allowed, and a check costs only one lookup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode, KafkaError
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

OPERATIONS_NOT_ASKED: Final = -(2**31)
"""Value of the authorized operations if the client did not request them."""

_GROUP_CONFIG: Final = 32
"""Kafka's number for groups as resources with settings. As resources with ACLs, groups have another number.
"""

_SUPPORTED: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations on each type of resource, as in Kafka's AclEntry."""
_GROUP_SETTINGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
"""Operations on the settings of groups, which Kafka 4.0 added."""

_CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def allows(
    ctx: ListenerContext, operation: Operation, resource_type: ResourceType, name: str, *, logged: bool = True
) -> bool:
    """Return whether the client may execute an operation on a resource. For `logged`, see Authorizer."""
    authorizer = ctx.authorizer
    return authorizer is None or authorizer.allows(
        ctx.principal, ctx.client_host, operation, resource_type, name, logged=logged
    )


def cluster_allows(ctx: ListenerContext, operation: Operation, *, logged: bool = True) -> bool:
    """Return whether the client may execute an operation on the cluster."""
    return allows(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME, logged=logged)


def may_write_idempotently(ctx: ListenerContext) -> bool:
    """Return whether the client has IDEMPOTENT_WRITE on the cluster or WRITE on any topic (KIP-679)."""
    if cluster_allows(ctx, Operation.IDEMPOTENT_WRITE, logged=False):
        return True
    authorizer = ctx.authorizer
    return authorizer is None or authorizer.allows_any(
        ctx.principal, ctx.client_host, Operation.WRITE, ResourceType.TOPIC
    )


def refusal(resource_type: ResourceType) -> KafkaError:
    """Return the authorization error for a resource type, with Kafka's message."""
    code = _CODES[resource_type]
    return KafkaError(code, STANDARD_MESSAGES[code])


def require(ctx: ListenerContext, operation: Operation, resource_type: ResourceType, name: str) -> None:
    """Raise KafkaError, which fails the whole request, unless the operation is allowed."""
    if not allows(ctx, operation, resource_type, name):
        raise refusal(resource_type)


def require_cluster(ctx: ListenerContext, operation: Operation) -> None:
    """Raise KafkaError, which fails the whole request, unless the operation on the cluster is allowed."""
    require(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def config_refusal(
    ctx: ListenerContext, operation: Operation, config_type: int, name: str
) -> KafkaError | None:
    """Return the error if the client may not read or alter the settings of a resource, or None if it may."""
    if config_type == ResourceType.TOPIC:
        return None if allows(ctx, operation, ResourceType.TOPIC, name) else refusal(ResourceType.TOPIC)
    if config_type == _GROUP_CONFIG:
        return None if allows(ctx, operation, ResourceType.GROUP, name) else refusal(ResourceType.GROUP)
    return None if cluster_allows(ctx, operation) else refusal(ResourceType.CLUSTER)


class Denied:
    """The resources in a request for which an operation is denied. Test each name with `name in denied`.

    The authorizer is called only once for each name.
    """

    __slots__ = ("_authorizer", "_ctx", "_decided", "_logged", "_operation", "_resource_type")

    def __init__(
        self, ctx: ListenerContext, operation: Operation, resource_type: ResourceType, *, logged: bool = True
    ) -> None:
        self._authorizer = ctx.authorizer
        self._ctx = ctx
        self._operation = operation
        self._resource_type = resource_type
        self._logged = logged
        self._decided: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        if self._authorizer is None or not isinstance(name, str):
            return False
        denied = self._decided.get(name)
        if denied is None:
            ctx = self._ctx
            denied = self._decided[name] = not self._authorizer.allows(
                ctx.principal,
                ctx.client_host,
                self._operation,
                self._resource_type,
                name,
                logged=self._logged,
            )
        return denied


def allowed_operations(ctx: ListenerContext, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the client may execute on a resource, as a bit field (KIP-430)."""
    return _allowed(ctx, resource_type, name, _SUPPORTED[resource_type])


def allowed_group_operations(ctx: ListenerContext, group_id: str) -> int:
    """Like `allowed_operations` for a group, but with the operations on its settings."""
    operations = (*_SUPPORTED[ResourceType.GROUP], *_GROUP_SETTINGS)
    return _allowed(ctx, ResourceType.GROUP, group_id, operations)


def _allowed(
    ctx: ListenerContext, resource_type: ResourceType, name: str, operations: tuple[Operation, ...]
) -> int:
    return sum(
        1 << operation
        for operation in operations
        if allows(ctx, operation, resource_type, name, logged=False)
    )


def allowed_cluster_operations(ctx: ListenerContext, is_asked: bool) -> int:
    """Return the cluster operations that the client may execute, or 0 if it may not DESCRIBE the cluster."""
    if not is_asked:
        return OPERATIONS_NOT_ASKED
    if not cluster_allows(ctx, Operation.DESCRIBE):
        return 0
    return allowed_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)
