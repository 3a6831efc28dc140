"""Permissions of a guest, as an Authorizer in this process and as ACLs for Apache Kafka.

A guest is any client that connects from GUEST_HOST. All other clients, such as the tests' administrator and
the brokers themselves, may do everything. The principal is always User:ANONYMOUS."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from tests.conformance.wire import Plain

GUEST_HOST = "127.0.0.2"
ADMIN_HOST = "127.0.0.1"
ANONYMOUS = "User:ANONYMOUS"
_LITERAL, _ALLOW = 3, 3

_TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
OPERATIONS: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: _TOPIC_OPERATIONS,
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
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
"""The operations that can be granted for each type of resource."""

_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


class Resource(NamedTuple):
    """The resource of an ACL."""

    kind: ResourceType
    name: str


class Policy:
    """The operations that the guest may perform on each resource. Other resources are denied."""

    def __init__(self, granted: Mapping[Resource, Iterable[Operation]] | None = None) -> None:
        self.granted = {resource: frozenset(some) for resource, some in (granted or {}).items()}

    @classmethod
    def random(cls, resources: Iterable[Resource], chance: random.Random, share: float) -> Policy:
        """Return a policy that grants about `share` of all operations, chosen at random."""
        return cls(
            {
                resource: [one for one in OPERATIONS[resource.kind] if chance.random() < share]
                for resource in resources
            }
        )

    def allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        granted = self.granted.get(Resource(kind, name), frozenset())
        return operation in granted or any(one in granted for one in _IMPLIED_BY.get(operation, ()))

    def acls(self) -> list[Plain]:
        """Return the policy as the creations of a CreateAcls request."""
        return [
            acl(resource, GUEST_HOST, operation)
            for resource, some in self.granted.items()
            for operation in sorted(some)
        ]

    def __str__(self) -> str:
        return "; ".join(
            f"{resource.kind.name} {resource.name}: {', '.join(one.name for one in sorted(some))}"
            for resource, some in self.granted.items()
        )


def acl(resource: Resource, host: str, operation: Operation) -> Plain:
    return {
        "resource_type": resource.kind,
        "resource_name": resource.name,
        "resource_pattern_type": _LITERAL,
        "principal": ANONYMOUS,
        "host": host,
        "operation": operation,
        "permission_type": _ALLOW,
    }


class GuestAuthorizer:
    """An authorizer that applies `policy`, which tests may replace at any time."""

    def __init__(self) -> None:
        self.policy = Policy()
        self.everybody_is_a_guest = False
        self.asked: list[tuple[Operation, ResourceType, str]] = []
        """Every authorization check for the guest, including repeated ones."""
        self.denied_aloud: set[tuple[str, str, str]] = set()
        """The denials that the audit log must contain, as (operation, resource type, resource name)."""

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logged: bool = True,
    ) -> bool:
        if not self._is_guest(host):
            return True
        self.asked.append((operation, resource_type, name))
        allowed = str(principal) == ANONYMOUS and self.policy.allows(operation, resource_type, name)
        if logged and not allowed:
            self.denied_aloud.add((operation.name, resource_type.name, name))
        return allowed

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return not self._is_guest(host) or any(
            self.policy.allows(operation, kind, name)
            for kind, name in self.policy.granted
            if kind == resource_type
        )

    def _is_guest(self, host: str) -> bool:
        return self.everybody_is_a_guest or host == GUEST_HOST
