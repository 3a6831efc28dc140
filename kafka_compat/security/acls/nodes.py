"""ACLs in the metadata store: Kafka 3.9's nodes, their paths and payloads.

    /kafka-acl/Topic/orders                     the ACLs on the literal name (`*`: on every topic)
    /kafka-acl-extended/prefixed/Topic/or       the ACLs on the prefix
    /kafka-acl-changes/acl_changes_0000000007   a notice: TOPIC:orders has other ACLs now
    /kafka-acl-extended-changes/acl_changes_…   the same of a prefix, as JSON

The JSON is Kafka's to the byte, but for the order of entries, which has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Final, TypeVar

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import NodeObject, encode_json
from kafka_compat.security.acls.bindings import (
    Entry,
    Pattern,
    PatternType,
    Permission,
    parse_principal,
    shown,
)
from kafka_compat.security.authorizer import Operation, ResourceType

M = TypeVar("M", bound=IntEnum)

FOLDERS: Final[Mapping[PatternType, str]] = {
    PatternType.LITERAL: "/kafka-acl",
    PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
}
"""Where the ACLs on patterns of a type are, by types of resources."""

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
"""What Kafka makes at the start."""

_VERSION: Final = 1


def path_of(pattern: Pattern) -> str:
    """The node with the ACLs on the pattern. ValueError for a name that the store does not take."""
    if not znodes.is_name(pattern.name):
        raise ValueError(f"{pattern.name!r} cannot be part of a path")
    return f"{FOLDERS[pattern.pattern_type]}/{shown(pattern.resource_type)}/{pattern.name}"


def resource_type(name: str) -> ResourceType | None:
    """The type of resources whose ACLs are in a folder of that name; None for a type that nobody knows."""
    return _known(RESOURCE_TYPES, name)


def encode_acls(entries: Iterable[Entry]) -> bytes:
    """The payload of `path_of`."""
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
    """The entries; none of an empty node. MalformedNode also for one of which we do not know what it means:
    it might forbid something."""
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
    """The member that Kafka writes so, in whatever case."""
    by_name = _by_name(members)
    return by_name.get(name) or by_name.get(name.upper())


@cache
def _by_name(members: tuple[M, ...]) -> dict[str, M]:
    return {
        name: member for member in members for name in (shown(member), shown(member).upper(), member.name)
    }


def encode_change(pattern: Pattern) -> bytes:
    """The payload of a notice."""
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
    """The pattern of a notice under /kafka-acl-changes."""
    text = (data or b"").decode(errors="replace")
    kind, colon, name = text.partition(":")
    known = resource_type(kind)
    if known is None or not colon:
        raise MalformedNode(path, f"{text!r:.80} is not TYPE:NAME")
    return Pattern(known, name, PatternType.LITERAL)


def decode_extended_change(path: str, data: bytes | None) -> Pattern:
    """The pattern of a notice under /kafka-acl-extended-changes."""
    values = NodeObject.parse(path, data)
    values.integer("version", low=_VERSION, high=_VERSION)
    return Pattern(
        _member(values, "resourceType", RESOURCE_TYPES),
        values.text("name"),
        _member(values, "patternType", (PatternType.LITERAL, PatternType.PREFIXED)),
    )
