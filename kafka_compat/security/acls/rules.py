"""Authorization decisions: whether the ACLs allow a principal on a host to execute an operation on a
resource. No I/O. Decisions are fast even if there are many ACLs.

Rules (Kafka's AclAuthorizer; KIP-11, KIP-290, KIP-679)
1. A super user may execute all operations.
2. The ACLs of a resource are the ACLs on its name, on every prefix of its name, and on `*`. A DENY entry that
   matches the principal, host and operation denies access.
3. Otherwise, a matching ALLOW entry allows access. READ, WRITE, DELETE and ALTER imply DESCRIBE;
   ALTER_CONFIGS implies DESCRIBE_CONFIGS. A DENY implies no other operation.
4. Access to a resource without ACLs is decided by allow.everyone.if.no.acl.found. Access to a resource with
   ACLs is denied if none of them matches.
5. The principal `User:*` matches all principals, the host `*` all hosts, and the operation ALL all
   operations. IPv6 addresses match in any notation: Java writes 0:0:0:0:0:0:0:1 for ::1.

Each pattern has a map from (principal, host) to two sets of operations, which are the bits of one number. A
decision therefore requires four lookups for each applicable pattern. Patterns are found by looking up the
name, and each beginning of the name that is as long as a known prefix.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from kafka_compat.config.authorizer import AuthorizerSettings
from kafka_compat.security.acls import bindings as acls
from kafka_compat.security.acls.bindings import EVERYBODY, WILDCARD, Entry, Pattern, PatternType, Permission
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal

_DENY_SHIFT: Final = 16
"""The lower bits are the allowed operations. The bits starting at this one are the denied operations."""
_ALL_BITS: Final = (1 << _DENY_SHIFT) - 1

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
_DENYING: Final = {operation: 1 << operation + _DENY_SHIFT for operation in Operation}
_ALLOWING: Final = {
    operation: sum(1 << allowed for allowed in (operation, *_IMPLIED_BY.get(operation, ())))
    for operation in Operation
}

_Who = tuple[Principal, str]
_Masks = dict[_Who, int]
"""Maps the (principal, host) of entries to the bits of their operations."""
_NO_ENTRIES: Final[frozenset[Entry]] = frozenset()


class Verdict(Enum):
    """A decision and its reason."""

    SUPER_USER = "it is a super user"
    DENIED = "an ACL denies it"
    ALLOWED = "an ACL allows it"
    NOT_ALLOWED = "no ACL allows it"
    OPEN = "the resource has no ACLs, and allow.everyone.if.no.acl.found is true"
    CLOSED = "the resource has no ACLs"


ALLOWING: Final = frozenset((Verdict.SUPER_USER, Verdict.ALLOWED, Verdict.OPEN))


class Grounds(NamedTuple):
    """The ACLs that determined a decision: their permission, principal, host and pattern."""

    permission: Permission
    principal: Principal
    host: str
    pattern: Pattern


class Rules:
    """The ACLs of a cluster, indexed for decisions."""

    def __init__(self, super_users: Iterable[Principal] = (), *, allow_if_no_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._types = {resource_type: _OfType(resource_type) for resource_type in ResourceType}

    @classmethod
    def configured(cls, settings: AuthorizerSettings) -> "Rules":
        """Return rules without ACLs for the settings of the authorizer."""
        super_users = [Principal(kind, name) for kind, name in settings.super_users]
        return cls(super_users, allow_if_no_acl=settings.allow_if_no_acl)

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replace the ACLs on a pattern. Raises ValueError if a principal is invalid."""
        self._types[pattern.resource_type].put(pattern, frozenset(entries))

    def decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """Decide whether the principal may execute the operation on the resource. `host` is an address."""
        if principal in self._super_users:
            return Verdict.SUPER_USER
        applying = self._types[resource_type].applying(name)
        if not applying:
            return Verdict.OPEN if self._allow_if_no_acl else Verdict.CLOSED
        keys = _keys(principal, host)
        mask = 0
        for masks in applying:
            for key in keys:
                if key in masks:
                    mask |= masks[key]
        if mask & _DENYING[operation]:
            return Verdict.DENIED
        return Verdict.ALLOWED if mask & _ALLOWING[operation] else Verdict.NOT_ALLOWED

    def grounds(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Grounds | None:
        """Return the ACLs that determine the decision DENIED or ALLOWED, or None if no ACL matches."""
        patterns = list(self._types[resource_type].patterns(name))
        for permission, bits in (
            (Permission.DENY, _DENYING[operation]),
            (Permission.ALLOW, _ALLOWING[operation]),
        ):
            for pattern, masks in patterns:
                for key in _keys(principal, host):
                    if masks.get(key, 0) & bits:
                        return Grounds(permission, *key, pattern)
        return None

    def decide_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> Verdict:
        """Decide whether the principal may execute the operation on any resource of the type (KIP-679).

        As in Kafka, only ACLs for the operation itself and for ALL count, not ACLs for operations that imply
        it. A permission counts unless a DENY on `*`, on a prefix, or on the same name covers it.
        """
        if principal in self._super_users:
            return Verdict.SUPER_USER
        of_type, keys = self._types[resource_type], _keys(principal, host)
        denied = of_type.named(keys, operation, Permission.DENY, PatternType.LITERAL)
        if any(WILDCARD in names for names in denied):
            return Verdict.DENIED
        if self._allow_if_no_acl:
            return Verdict.OPEN
        denied_prefixes = of_type.named(keys, operation, Permission.DENY, PatternType.PREFIXED)
        for names in of_type.named(keys, operation, Permission.ALLOW, PatternType.PREFIXED):
            if any(not _is_covered(name, denied_prefixes) for name in names):
                return Verdict.ALLOWED
        for names in of_type.named(keys, operation, Permission.ALLOW, PatternType.LITERAL):
            if WILDCARD in names:
                return Verdict.ALLOWED
            for name in names:
                if any(name in others for others in denied) or _is_covered(name, denied_prefixes):
                    continue
                return Verdict.ALLOWED
        return Verdict.DENIED if denied or denied_prefixes else Verdict.NOT_ALLOWED


class _OfType:
    """The ACLs for one resource type."""

    __slots__ = ("_entries", "_lengths", "_lengths_sorted", "_literals", "_named", "_prefixes", "_type")

    def __init__(self, resource_type: ResourceType) -> None:
        self._type = resource_type
        self._entries: dict[Pattern, frozenset[Entry]] = {}
        self._literals: dict[str, _Masks] = {}
        self._prefixes: dict[str, _Masks] = {}
        self._lengths: Counter[int] = Counter()
        """The number of prefixes of each length."""
        self._lengths_sorted: list[int] = []
        self._named: dict[tuple[_Who, Operation, Permission, PatternType], set[str]] = {}
        """Maps (who, operation, permission, pattern type) to the names of the patterns with such entries."""

    def put(self, pattern: Pattern, entries: frozenset[Entry]) -> None:
        masks = _masks(entries)
        old = self._entries.get(pattern, _NO_ENTRIES)
        for entry in old - entries:
            key = (_who(entry.principal, entry.host), entry.operation, entry.permission, pattern.pattern_type)
            if key in self._named:
                self._named[key].discard(pattern.name)
                if not self._named[key]:
                    del self._named[key]
        for entry in entries:
            # Add unchanged entries again: a removed notation of the same address may have had the same key.
            key = (_who(entry.principal, entry.host), entry.operation, entry.permission, pattern.pattern_type)
            self._named.setdefault(key, set()).add(pattern.name)
        is_prefix = pattern.pattern_type is PatternType.PREFIXED
        by_name = self._prefixes if is_prefix else self._literals
        if is_prefix and bool(old) != bool(entries):
            self._count(len(pattern.name), 1 if entries else -1)
        if entries:
            self._entries[pattern] = entries
            by_name[pattern.name] = masks
        else:
            self._entries.pop(pattern, None)
            by_name.pop(pattern.name, None)

    def _count(self, length: int, change: int) -> None:
        self._lengths[length] += change
        if not self._lengths[length]:
            del self._lengths[length]
        if len(self._lengths) != len(self._lengths_sorted):
            self._lengths_sorted = sorted(self._lengths)

    def applying(self, name: str) -> list[_Masks]:
        """Return the ACLs for each pattern that matches the resource name."""
        found = []
        literals, prefixes = self._literals, self._prefixes
        if WILDCARD in literals:
            found.append(literals[WILDCARD])
        if name in literals:
            found.append(literals[name])
        for length in self._lengths_sorted:
            if length > len(name):
                break
            prefix = name[:length]
            if prefix in prefixes:
                found.append(prefixes[prefix])
        return found

    def patterns(self, name: str) -> Iterator[tuple[Pattern, _Masks]]:
        """Yield each pattern that matches the resource name, with its ACLs."""
        for literal in dict.fromkeys((WILDCARD, name)):
            if literal in self._literals:
                yield Pattern(self._type, literal, PatternType.LITERAL), self._literals[literal]
        for length in self._lengths_sorted:
            prefix = name[:length]
            if len(prefix) == length and prefix in self._prefixes:
                yield Pattern(self._type, prefix, PatternType.PREFIXED), self._prefixes[prefix]

    def named(
        self, keys: Sequence[_Who], operation: Operation, permission: Permission, pattern_type: PatternType
    ) -> list[set[str]]:
        """Return the names of patterns of this type that have entries for the operation or for ALL."""
        found = []
        for key in dict.fromkeys(keys):
            for concerned in (operation, Operation.ALL):
                names = self._named.get((key, concerned, permission, pattern_type))
                if names:
                    found.append(names)
        return found


def _is_covered(name: str, prefixes: Sequence[set[str]]) -> bool:
    if not prefixes:
        return False
    return any(name[:length] in names for length in range(1, len(name) + 1) for names in prefixes)


def _masks(entries: Iterable[Entry]) -> _Masks:
    masks: _Masks = {}
    for entry in entries:
        key = _who(entry.principal, entry.host)
        bits = _ALL_BITS if entry.operation is Operation.ALL else 1 << entry.operation
        if entry.permission is Permission.DENY:
            bits <<= _DENY_SHIFT
        masks[key] = masks.get(key, 0) | bits
    return masks


def _keys(principal: Principal, host: str) -> tuple[_Who, _Who, _Who, _Who]:
    """Return the (principal, host) keys of the entries that can match."""
    if ":" in host:
        host = _spelled(host)
    return (principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)


@lru_cache(maxsize=65_536)
def _who(principal: str, host: str) -> _Who:
    """Return the (principal, host) key of an entry. Keys are cached, so that entries share them."""
    return acls.parse_principal(principal), _spelled(host)


@lru_cache(maxsize=4096)
def _spelled(host: str) -> str:
    """Normalize an IPv6 address to Python's notation, and an IPv4-mapped address to IPv4."""
    if ":" not in host:
        return host
    from ipaddress import IPv6Address  # Import the class here: it is rarely needed and slow to import (5 ms).

    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)
