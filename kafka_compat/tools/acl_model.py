"""What access control lists are made of, as kafka-acls takes and prints it; no I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_compat.tools.failure import Failure, illegal_argument

RESOURCES: Final = (
    "UNKNOWN",
    "ANY",
    "TOPIC",
    "GROUP",
    "CLUSTER",
    "TRANSACTIONAL_ID",
    "DELEGATION_TOKEN",
    "USER",
)
PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS: Final = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
"""By their numbers in requests."""

CLUSTER_NAME: Final = "kafka-cluster"

SUPPORTED: Final = {
    "TOPIC": "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS ALL",
    "GROUP": "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS ALL",
    "CLUSTER": "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE ALL",
    "TRANSACTIONAL_ID": "DESCRIBE WRITE TWO_PHASE_COMMIT ALL",
    "DELEGATION_TOKEN": "DESCRIBE ALL",
    "USER": "CREATE_TOKENS DESCRIBE_TOKENS ALL",
}
"""The operations that there are on a resource; of Kafka 4.x, where the older Kafka has fewer."""


class Resource(NamedTuple):
    """Names, or a filter of names."""

    kind: str
    name: str
    pattern: str

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.kind}, name={self.name}, patternType={self.pattern})"


class Entry(NamedTuple):
    """Who may do what, or must not, from where."""

    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation}, "
            f"permissionType={self.permission})"
        )


CLUSTER: Final = Resource("CLUSTER", CLUSTER_NAME, "LITERAL")


def pattern_of(text: str) -> str:
    """Raises Failure."""
    if text.upper() not in PATTERNS:
        cause = f"Value [{text}] is not one of [ANY|MATCH|LITERAL|PREFIXED]"
    elif text.upper() == "UNKNOWN":
        cause = f"Unknown resource-pattern-type: {text}"
    else:
        return text.upper()
    raise Failure(
        "joptsimple.OptionArgumentConversionException",
        f"Cannot parse argument '{text}' of option resource-pattern-type",
        Failure("joptsimple.ValueConversionException", cause),
    )


def operation_of(text: str) -> str:
    """UNKNOWN for what is none."""
    upper = text.upper()
    names = {name.replace("_", ""): name for name in OPERATIONS}
    return names.get(upper, "UNKNOWN")


def principal_of(text: str) -> str:
    """Raises Failure."""
    if ":" not in text:
        raise illegal_argument(f"expected a string in format principalType:principalName but got {text}")
    return text


def told_operations(kind: str) -> str:
    """The operations on a resource, as they are told to users."""
    return f"[{', '.join(SUPPORTED[kind].split())}]"
