"""Reference implementation of ACL decisions (KIP-11, KIP-290, KIP-679), which evaluates every ACL.

Tests compare the decisions of `kafka_compat.security.acls.rules` with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka_compat.security.acls.bindings import Binding, Pattern, PatternType, Permission
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal


def applies(pattern: Pattern, resource_type: ResourceType, name: str) -> bool:
    if pattern.resource_type is not resource_type:
        return False
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in (name, "*")


def concerns(acl: Binding, principal: Principal, host: str, operation: Operation) -> bool:
    return (
        acl.entry.principal in (f"{principal.kind}:{principal.name}", "User:*")
        and acl.entry.host in (host, "*")
        and acl.entry.operation in (operation, Operation.ALL)
    )


def allowed_by(operation: Operation) -> set[Operation]:
    """The operations whose permission implies `operation`."""
    if operation is Operation.DESCRIBE:
        return {operation, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation is Operation.DESCRIBE_CONFIGS:
        return {operation, Operation.ALTER_CONFIGS}
    return {operation}


def may(
    acls: Iterable[Binding],
    super_users: Collection[Principal],
    allow_if_no_acl: bool,
    principal: Principal,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> bool:
    if principal in super_users:
        return True
    on_it = [acl for acl in acls if applies(acl.pattern, resource_type, name)]
    if not on_it:
        return allow_if_no_acl
    for acl in on_it:
        if acl.entry.permission is Permission.DENY and concerns(acl, principal, host, operation):
            return False
    return any(
        acl.entry.permission is Permission.ALLOW and concerns(acl, principal, host, implying)
        for acl in on_it
        for implying in allowed_by(operation)
    )


def may_any(
    acls: Collection[Binding],
    super_users: Collection[Principal],
    allow_if_no_acl: bool,
    principal: Principal,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
) -> bool:
    if principal in super_users:
        return True
    concerned = [
        acl
        for acl in acls
        if acl.pattern.resource_type is resource_type and concerns(acl, principal, host, operation)
    ]
    denied = [acl.pattern for acl in concerned if acl.entry.permission is Permission.DENY]
    allowed = [acl.pattern for acl in concerned if acl.entry.permission is Permission.ALLOW]
    if any(pattern.pattern_type is PatternType.LITERAL and pattern.name == "*" for pattern in denied):
        return False
    if allow_if_no_acl:
        return True
    return any(not any(covers(other, pattern) for other in denied) for pattern in allowed)


def covers(denied: Pattern, allowed: Pattern) -> bool:
    """Whether `denied` matches every name that `allowed` matches. False if `allowed` is the wildcard `*`."""
    if allowed.pattern_type is PatternType.LITERAL and allowed.name == "*":
        return False
    if denied.pattern_type is PatternType.PREFIXED:
        return allowed.name.startswith(denied.name)
    return denied == allowed
