"""ACL bindings: an entry (principal, host, operation, allow or deny) on a resource pattern (KIP-11, KIP-290).

The module also contains filters for listing and deleting ACLs, and Kafka 3.9's ACL nodes in the store:

    /kafka-acl/Topic/orders                     the ACLs on the literal name (`*`: on every topic)
    /kafka-acl-extended/prefixed/Topic/or       the ACLs on the prefix
    /kafka-acl-changes/acl_changes_0000000007   a notification: the ACLs of TOPIC:orders have changed
    /kafka-acl-extended-changes/acl_changes_…   a notification for a prefix, as JSON

The JSON is the same as Kafka's, except for the order of entries, which has no meaning.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import NodeObject, encode_json
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal

WILDCARD: Final = "*"
"""The literal resource name for all resources of a type, and the host for all hosts."""

EVERYBODY: Final = Principal("User", "*")
"""The principal in entries that apply to all principals of any kind."""


class PatternType(IntEnum):
    """Kafka's PatternType. ANY and MATCH are valid only in filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Kafka's AclPermissionType. ANY is valid only in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """A resource pattern: the resource named `name`, or all resources whose names begin with `name`."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return f"{shown(self.resource_type)}:{self.pattern_type.name}:{self.name}"


class Entry(NamedTuple):
    """An access control entry. `principal` is "kind:name" (see parse_principal)."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


class Binding(NamedTuple):
    """One ACL: an entry for a resource pattern."""

    pattern: Pattern
    entry: Entry


class PatternFilter(NamedTuple):
    """A filter for resource patterns. The type ANY matches all types, and the name None matches all names.

    The pattern type MATCH matches all patterns that apply to the resource with this name, including prefixes
    and `*`. UNKNOWN matches no pattern.
    """

    resource_type: ResourceType
    name: str | None
    pattern_type: PatternType

    def matches(self, pattern: Pattern) -> bool:
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name in (self.name, WILDCARD)
        return self.name.startswith(pattern.name)

    def candidates(self) -> list[Pattern] | None:
        """Return all patterns that may match, or None if the existing patterns must be searched."""
        if self.pattern_type is PatternType.UNKNOWN or self.resource_type is ResourceType.UNKNOWN:
            return []
        if self.name is None or self.resource_type is ResourceType.ANY:
            return None
        if self.pattern_type is PatternType.MATCH:
            return None
        if self.pattern_type is PatternType.ANY:
            kinds = [PatternType.LITERAL, PatternType.PREFIXED]
        else:
            kinds = [self.pattern_type]
        return [Pattern(self.resource_type, self.name, kind) for kind in kinds]


class EntryFilter(NamedTuple):
    """A filter for entries. None and ANY match all values; UNKNOWN matches no entry."""

    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def matches(self, entry: Entry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )


class Filter(NamedTuple):
    pattern: PatternFilter
    entry: EntryFilter


def parse_principal(text: str) -> Principal:
    """Parse a principal such as `User:alice`. Raises ValueError if it has no colon."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def shown(member: IntEnum) -> str:
    """Return an enumeration member's name as Kafka spells it in znodes and logs: `TransactionalId`."""
    return member.name.title().replace("_", "")


M = TypeVar("M", bound=IntEnum)

FOLDERS: Final[Mapping[PatternType, str]] = {
    PatternType.LITERAL: "/kafka-acl",
    PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
}
"""Paths of the ACL nodes, by pattern type; each contains nodes by resource type."""

CHANGES: Final[Mapping[PatternType, str]] = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
CHANGE_PREFIX: Final = "acl_changes_"

RESOURCE_TYPES: Final = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
OPERATIONS: Final = tuple(operation for operation in Operation if operation > Operation.ANY)
PERMISSIONS: Final = (Permission.DENY, Permission.ALLOW)

PERSISTENT_PATHS: Final = (
    *(f"{folder}/{shown(kind)}" for folder in FOLDERS.values() for kind in RESOURCE_TYPES),
    *CHANGES.values(),
)
"""Nodes that Kafka creates at startup."""

_VERSION: Final = 1


def path_of(pattern: Pattern) -> str:
    """Return the path of a pattern's node. Raises ValueError if the name is not valid in a path."""
    if not znodes.is_name(pattern.name):
        raise ValueError(f"{pattern.name!r} cannot be part of a path")
    return f"{FOLDERS[pattern.pattern_type]}/{shown(pattern.resource_type)}/{pattern.name}"


def resource_type(name: str) -> ResourceType | None:
    """Return the resource type for a node name, or None if the type is unknown."""
    return _known(RESOURCE_TYPES, name)


def encode_acls(entries: Iterable[Entry]) -> bytes:
    """Encode the ACLs for a pattern's node."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": shown(entry.permission),
            "host": entry.host,
            "operation": shown(entry.operation),
        }
        for entry in sorted(entries)
    ]
    return encode_json({"acls": acls, "version": _VERSION})


def decode_acls(path: str, data: bytes | None) -> frozenset[Entry]:
    """Decode the ACLs in a pattern's node. Raises MalformedNode if an entry is invalid or has unknown values,
    because the entry might deny an operation.
    """
    if not data:
        return frozenset()
    values = NodeObject.parse(path, data)
    values.integer("version", low=_VERSION, high=_VERSION)
    return frozenset(map(_entry, values.objects("acls")))


def _entry(values: NodeObject) -> Entry:
    principal = values.text("principal")
    try:
        parse_principal(principal)
    except ValueError as error:
        raise values.wrong("principal", f"is {principal!r}: {error}") from error
    return Entry(
        principal,
        values.text("host"),
        _member(values, "operation", OPERATIONS),
        _member(values, "permissionType", PERMISSIONS),
    )


def _member(values: NodeObject, field: str, members: tuple[M, ...]) -> M:
    name = values.text(field)
    member = _known(members, name)
    if member is None:
        raise values.wrong(field, f"is {name!r}, which is unknown")
    return member


def _known(members: tuple[M, ...], name: str) -> M | None:
    """Return the enumeration member with this name, ignoring case, or None if the name is unknown."""
    by_name = _by_name(members)
    return by_name.get(name) or by_name.get(name.upper())


@cache
def _by_name(members: tuple[M, ...]) -> dict[str, M]:
    return {
        name: member for member in members for name in (shown(member), shown(member).upper(), member.name)
    }


def encode_change(pattern: Pattern) -> bytes:
    """Encode a notification of changed ACLs."""
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    fields: dict[str, Any] = {
        "version": _VERSION,
        "resourceType": pattern.resource_type.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return encode_json(fields)


def decode_literal_change(path: str, data: bytes | None) -> Pattern:
    """Decode a notification under /kafka-acl-changes. Raises MalformedNode if it is invalid."""
    text = (data or b"").decode(errors="replace")
    kind, colon, name = text.partition(":")
    known = resource_type(kind)
    if known is None or not colon:
        raise MalformedNode(path, f"{text!r:.80} is not TYPE:NAME")
    return Pattern(known, name, PatternType.LITERAL)


def decode_extended_change(path: str, data: bytes | None) -> Pattern:
    """Decode a notification under /kafka-acl-extended-changes. Raises MalformedNode if it is invalid."""
    values = NodeObject.parse(path, data)
    values.integer("version", low=_VERSION, high=_VERSION)
    return Pattern(
        _member(values, "resourceType", RESOURCE_TYPES),
        values.text("name"),
        _member(values, "patternType", (PatternType.LITERAL, PatternType.PREFIXED)),
    )
