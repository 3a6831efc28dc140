"""Interface of an authorizer, and resource types and operations by their protocol numbers (KIP-11).

`ctx.services.authorizer` is the broker's authorizer. If it is None, every request is allowed.
"""

from enum import IntEnum
from typing import Final, Protocol

from kafka_compat.security.principal import Principal


class ResourceType(IntEnum):
    """Kafka's ResourceType. UNKNOWN stands for unknown types, and ANY is valid only in filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """Kafka's AclOperation."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


CLUSTER_NAME: Final = "kafka-cluster"
"""Name of the only resource of type CLUSTER."""


class Authorizer(Protocol):
    """An authorizer that decides from memory, without waiting."""

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
        """Return whether `principal`, at the address `host`, may execute the operation on the resource.

        `logged` states whether the decision is written to the audit log. As in Kafka, denials are not logged
        by checks that only filter a response.
        """

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether the operation is allowed on at least one resource of this type (KIP-679)."""
