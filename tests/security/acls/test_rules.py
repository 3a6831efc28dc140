"""ACL decisions match an evaluation of every ACL and Kafka's authorizer, and stay fast with many ACLs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.security.acls.bindings import (
    OPERATIONS,
    RESOURCE_TYPES,
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
)
from kafka_compat.security.acls.rules import ALLOWING, Rules, Verdict
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from tests.oracle.acl_oracle import AclOracle
from tests.security.acls import brute_force
from tests.support.campaign import rounds

NAMES = ("a", "ab", "abé", "*", "*a", "")
PRINCIPALS = ("User:ann", "User:bob", "User:*", "Group:ann", "User:CN=x:y")
HOSTS = ("10.0.0.1", "10.0.0.2", "fe80:0:0:0:0:0:0:1", "*")
"""In Java's notation, because Kafka compares addresses as text."""
FEW_TYPES = (ResourceType.TOPIC, ResourceType.GROUP)

ANN = Principal("User", "ann")
BOB = Principal("User", "bob")

ASKING = (ANN, BOB, Principal("Group", "ann"), Principal("User", "CN=x:y"))

KINDS = (PatternType.LITERAL, PatternType.PREFIXED)
CONCERNED = (Operation.ALL, Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALTER_CONFIGS)
"""The operations of most ACLs, so that ACLs for the same operation are frequent."""

acl_sets = st.lists(
    st.builds(
        Binding,
        st.builds(Pattern, st.sampled_from(FEW_TYPES), st.sampled_from(NAMES[:-1]), st.sampled_from(KINDS)),
        st.builds(
            Entry,
            st.sampled_from(PRINCIPALS),
            st.sampled_from(HOSTS),
            st.sampled_from(OPERATIONS),
            st.sampled_from((Permission.DENY, Permission.ALLOW)),
        ),
    ),
    max_size=8,
)


def some_acls(chance: random.Random) -> list[Binding]:
    """Random ACLs like those of `acl_sets`, generated much faster."""
    found = []
    for _ in range(chance.choice((1, 2, 4, 8, 16))):
        operation = chance.choice(CONCERNED if chance.random() < 0.7 else OPERATIONS)
        permission = Permission.DENY if chance.random() < 0.3 else Permission.ALLOW
        found.append(
            Binding(
                Pattern(chance.choice(FEW_TYPES), chance.choice(NAMES[:-1]), chance.choice(KINDS)),
                Entry(chance.choice(PRINCIPALS), chance.choice(HOSTS), operation, permission),
            )
        )
    return found


def put_all(rules: Rules, acls: Iterable[Binding]) -> None:
    by_pattern: dict[Pattern, set[Entry]] = {}
    for acl in acls:
        by_pattern.setdefault(acl.pattern, set()).add(acl.entry)
    for pattern, found in by_pattern.items():
        rules.put(pattern, found)


def rules_of(*acls: Binding, super_users: Iterable[Principal] = (), allow_if_no_acl: bool = False) -> Rules:
    rules = Rules(super_users, allow_if_no_acl=allow_if_no_acl)
    put_all(rules, acls)
    return rules


def acl(
    permission: Permission,
    operation: Operation,
    name: str = "a",
    *,
    prefixed: bool = False,
    principal: str = "User:ann",
    host: str = "*",
    kind: ResourceType = ResourceType.TOPIC,
) -> Binding:
    pattern_type = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return Binding(Pattern(kind, name, pattern_type), Entry(principal, host, operation, permission))


def check(
    rules: Rules,
    acls: list[Binding],
    super_users: tuple[Principal, ...],
    allow_if_no_acl: bool,
    principal: Principal,
    host: str,
    kind: ResourceType,
) -> None:
    """Check that the decisions for a client match an evaluation of every ACL, and name a matching ACL."""
    for operation in OPERATIONS:
        asked = (principal, host, operation, kind)
        any_of_them = rules.decide_any(*asked) in ALLOWING
        expected = brute_force.may_any(acls, super_users, allow_if_no_acl, *asked)
        assert any_of_them == expected, (asked, acls)
        for name in NAMES:
            verdict = rules.decide(*asked, name)
            expected = brute_force.may(acls, super_users, allow_if_no_acl, *asked, name)
            assert (verdict in ALLOWING) == expected, (asked, name, acls)
            if verdict in (Verdict.DENIED, Verdict.ALLOWED):
                grounds = rules.grounds(*asked, name)
                assert grounds is not None
                wanted = Permission.ALLOW if verdict is Verdict.ALLOWED else Permission.DENY
                assert grounds.permission is wanted
                assert brute_force.applies(grounds.pattern, kind, name)


@settings(max_examples=200)
@given(
    before=acl_sets,
    acls=acl_sets,
    allow_if_no_acl=st.booleans(),
    principal=st.sampled_from(ASKING),
    host=st.sampled_from(HOSTS[:-1]),
)
def test_replaced_acls_do_not_affect_decisions(
    before: list[Binding], acls: list[Binding], allow_if_no_acl: bool, principal: Principal, host: str
) -> None:
    rules = rules_of(*before, allow_if_no_acl=allow_if_no_acl)
    for gone in {item.pattern for item in before} - {item.pattern for item in acls}:
        rules.put(gone, ())
    put_all(rules, acls)
    check(rules, acls, (), allow_if_no_acl, principal, host, ResourceType.TOPIC)


@pytest.mark.timeout(1200)
def test_decisions_match_an_evaluation_of_every_acl() -> None:
    """Uses thousands of random sets of ACLs."""
    for seed in range(rounds(3000, 100_000)):
        chance = random.Random(seed)
        acls, allow_if_no_acl = some_acls(chance), chance.random() < 0.5
        super_users = (BOB,) if chance.random() < 0.2 else ()
        rules = rules_of(*acls, super_users=super_users, allow_if_no_acl=allow_if_no_acl)
        who = chance.choice(ASKING), chance.choice(HOSTS[:-1]), chance.choice(FEW_TYPES)
        check(rules, acls, super_users, allow_if_no_acl, *who)


@pytest.fixture(scope="module")
def kafka() -> Iterator[AclOracle]:
    with AclOracle() as running:
        yield running


@pytest.mark.timeout(1200)
def test_decisions_match_those_of_kafkas_own_authorizer(kafka: AclOracle) -> None:
    for seed in range(rounds(1000, 100_000)):
        chance = random.Random(f"kafka {seed}")
        acls, allow_if_no_acl = some_acls(chance), chance.random() < 0.5
        super_users = (BOB,) if chance.random() < 0.2 else ()
        rules = rules_of(*acls, super_users=super_users, allow_if_no_acl=allow_if_no_acl)
        principal, host, kind = chance.choice(ASKING), chance.choice(HOSTS[:-1]), chance.choice(FEW_TYPES)
        decided = kafka.ask(acls, super_users, allow_if_no_acl, principal, host, kind, NAMES)
        for (operation, name), allowed in decided.items():
            if name is None:
                verdict = rules.decide_any(principal, host, operation, kind)
            else:
                verdict = rules.decide(principal, host, operation, kind, name)
            assert (verdict in ALLOWING) == allowed, (operation, name, principal, host, acls)


def test_super_users_take_precedence_over_deny_and_deny_over_allow() -> None:
    allow = acl(Permission.ALLOW, Operation.READ)
    deny = acl(Permission.DENY, Operation.READ, "*", principal="User:*")
    asked = (ANN, "10.0.0.1", Operation.READ, ResourceType.TOPIC, "a")
    assert rules_of(allow).decide(*asked) is Verdict.ALLOWED
    assert rules_of(allow, deny).decide(*asked) is Verdict.DENIED
    assert rules_of(allow, deny, super_users=[ANN]).decide(*asked) is Verdict.SUPER_USER
    assert rules_of().decide(*asked) is Verdict.CLOSED
    assert rules_of(allow_if_no_acl=True).decide(*asked) is Verdict.OPEN
    other = acl(Permission.ALLOW, Operation.WRITE, principal="User:bob")
    assert rules_of(other, allow_if_no_acl=True).decide(*asked) is Verdict.NOT_ALLOWED


@pytest.mark.parametrize("operation", OPERATIONS)
def test_implied_operations_are_allowed(operation: Operation) -> None:
    for asked in OPERATIONS:
        verdict = rules_of(acl(Permission.ALLOW, operation)).decide(ANN, "h", asked, ResourceType.TOPIC, "a")
        implied = operation is Operation.ALL or operation in brute_force.allowed_by(asked)
        assert (verdict is Verdict.ALLOWED) == implied
        everything = acl(Permission.ALLOW, Operation.ALL)
        verdict = rules_of(everything, acl(Permission.DENY, operation)).decide(
            ANN, "h", asked, ResourceType.TOPIC, "a"
        )
        assert (verdict is Verdict.DENIED) == (operation in (asked, Operation.ALL)), "DENY is implied"


def test_acls_apply_only_to_their_resource_type() -> None:
    for kind in RESOURCE_TYPES:
        rules = rules_of(acl(Permission.ALLOW, Operation.ALL, "*", kind=kind))
        for asked in RESOURCE_TYPES:
            verdict = rules.decide(ANN, "h", Operation.READ, asked, "a")
            assert (verdict is Verdict.ALLOWED) == (kind is asked)


@pytest.mark.parametrize(
    ("written", "came"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::1", "::1"),
        ("FE80::1", "fe80::1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
    ],
)
def test_addresses_match_regardless_of_spelling(written: str, came: str) -> None:
    rules = rules_of(acl(Permission.DENY, Operation.READ, host=written))
    assert rules.decide(ANN, came, Operation.READ, ResourceType.TOPIC, "a") is Verdict.DENIED
    assert rules.decide(ANN, "10.9.9.9", Operation.READ, ResourceType.TOPIC, "a") is Verdict.NOT_ALLOWED
    rules.put(Pattern(ResourceType.TOPIC, "a", PatternType.LITERAL), ())
    assert rules.decide(ANN, came, Operation.READ, ResourceType.TOPIC, "a") is Verdict.CLOSED


def test_acls_for_two_spellings_of_an_address_are_distinct() -> None:
    """Deleting one does not delete the other."""
    short, long = (acl(Permission.ALLOW, Operation.WRITE, host=host) for host in ("::1", "0:0:0:0:0:0:0:1"))
    rules = rules_of(short, long)
    rules.put(short.pattern, [long.entry])
    assert rules.decide_any(ANN, "::1", Operation.WRITE, ResourceType.TOPIC) is Verdict.ALLOWED
    rules.put(short.pattern, [])
    assert rules.decide_any(ANN, "::1", Operation.WRITE, ResourceType.TOPIC) is Verdict.NOT_ALLOWED


def test_decisions_do_not_slow_down_as_the_number_of_acls_grows() -> None:
    """A decision among 30,000 ACLs, a tenth of them prefixed, takes less than 30 times as long as among 20.
    Evaluating every ACL would take more than a thousand times as long.
    """

    def filled(count: int) -> Rules:
        rules = Rules()
        for number in range(count):
            prefixed = number % 10 == 0
            name = "x" * (number % 40) + str(number)
            rules.put(
                Pattern(ResourceType.TOPIC, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL),
                [Entry(f"User:{number}", "*", Operation.READ, Permission.ALLOW)],
            )
        return rules

    def best_s(rules: Rules) -> float:
        def run() -> float:
            began_s = time.perf_counter()
            for number in range(500):
                rules.decide(ANN, "h", Operation.READ, ResourceType.TOPIC, f"{'x' * 30}{number}")
            return time.perf_counter() - began_s

        return min(run() for _ in range(5))

    assert best_s(filled(30_000)) < 30 * best_s(filled(20))


def test_a_star_as_a_prefix_is_not_a_wildcard(kafka: AclOracle) -> None:
    """A DENY for the prefix `*` does not affect an ALLOW for the wildcard `*` on other names."""
    denied = acl(Permission.DENY, Operation.READ, "*", prefixed=True)
    acls = [denied, acl(Permission.ALLOW, Operation.READ, "*")]
    rules = rules_of(*acls)
    assert rules.decide_any(ANN, "10.0.0.1", Operation.READ, ResourceType.TOPIC) is Verdict.ALLOWED
    decided = kafka.ask(acls, (), False, ANN, "10.0.0.1", ResourceType.TOPIC, NAMES)
    assert decided[Operation.READ, None]
    assert not decided[Operation.READ, "*a"]
    assert rules.decide(ANN, "10.0.0.1", Operation.READ, ResourceType.TOPIC, "*a") is Verdict.DENIED
