"""Interface of an authorizer: operations on resources, by their numbers in the protocol (KIP-11).

A broker has an authorizer or none (`ctx.services.authorizer`); without one, every request is allowed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol

from kafka_compat.security.principal import Principal


class ResourceType(IntEnum):
    """As Kafka's ResourceType. The first two stand in filters and in what nobody knows."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """As Kafka's AclOperation."""

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
"""The name of the one resource of type CLUSTER."""


class Authorizer(Protocol):
    """Decides from memory, at once."""

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
        """Whether `principal`, coming from the address `host`, may do this to the resource of that name.

        `logged`: the audit log tells of it. Where Kafka asks only to leave things out of an answer, it does
        not tell of what is denied.
        """

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any resource of that type for which this is allowed (KIP-679)."""
