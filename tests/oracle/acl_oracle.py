"""Decisions of Kafka's own AclAuthorizer (AclOracle.java)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence

from kafka_compat.security.acls.bindings import OPERATIONS, Binding, Entry, Pattern
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from tests.oracle.jvm import OracleJvm


class AclOracle(OracleJvm):
    """The authorizer of Kafka 3.9.1. Use it as a context manager, which ends the JVM."""

    def __init__(self) -> None:
        super().__init__("AclOracle", "3.9.1")

    def ask(
        self,
        acls: Iterable[Binding],
        super_users: Collection[Principal],
        allow_if_no_acl: bool,
        principal: Principal,
        host: str,
        resource_type: ResourceType,
        names: Sequence[str],
    ) -> dict[tuple[Operation, str | None], bool]:
        """Return whether each operation is allowed on a resource name, or on any resource of the type if the
        name is None.
        """
        by_pattern: dict[Pattern, set[Entry]] = {}
        for acl in acls:
            by_pattern.setdefault(acl.pattern, set()).add(acl.entry)
        question = [struct.pack(">?h", allow_if_no_acl, len(super_users))]
        question += [text for user in super_users for text in map(_text, user)]
        question.append(struct.pack(">h", len(by_pattern)))
        for pattern, entries in by_pattern.items():
            question.append(struct.pack(">b", pattern.resource_type))
            question.append(_text(pattern.name) + struct.pack(">bh", pattern.pattern_type, len(entries)))
            for entry in entries:
                kinds = struct.pack(">bb", entry.operation, entry.permission)
                question.append(_text(entry.principal) + _text(entry.host) + kinds)
        question += [_text(principal.kind), _text(principal.name), _text(host)]
        question.append(struct.pack(">bh", resource_type, len(names)))
        question += map(_text, names)
        self.say(b"".join(question))
        asked = [(operation, name) for operation in OPERATIONS for name in (None, *names)]
        return dict(zip(asked, map(bool, self.read(len(asked))), strict=True))


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
