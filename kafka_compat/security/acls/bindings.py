"""What an ACL is: an entry (who, from where, may or may not do what) on a pattern of resources (KIP-11,
KIP-290), and the filters by which ACLs are listed and removed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal

WILDCARD: Final = "*"
"""As a literal resource name: every resource of the type. As a host: every host."""

EVERYBODY: Final = Principal("User", "*")
"""As the principal of an entry: principals of whatever name and kind."""


class PatternType(IntEnum):
    """As Kafka's PatternType. ANY and MATCH stand in filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """As Kafka's AclPermissionType. ANY stands in filters alone."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """The resources that entries are about: `name` itself, or every name that begins with it."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return f"{shown(self.resource_type)}:{self.pattern_type.name}:{self.name}"


class Entry(NamedTuple):
    """`principal` is "kind:name", as parse_principal takes it."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


class Binding(NamedTuple):
    """One ACL."""

    pattern: Pattern
    entry: Entry


class PatternFilter(NamedTuple):
    """Which patterns are meant. ANY as a type takes every type, None as a name every name.

    MATCH as the pattern type takes all patterns that apply to the resource of that name, as prefixes of it
    and `*` do. Something UNKNOWN takes nothing.
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
        """All patterns that it can take; None where nobody can tell them without knowing which there are."""
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
    """Which entries are meant: None and ANY take everything, UNKNOWN nothing."""

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
    """Which ACLs are meant."""

    pattern: PatternFilter
    entry: EntryFilter


def parse_principal(text: str) -> Principal:
    """`User:alice`. ValueError for a text that names none."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def shown(member: IntEnum) -> str:
    """A member of an enumeration as Kafka writes it in nodes and logs: `TransactionalId`."""
    return member.name.title().replace("_", "")
