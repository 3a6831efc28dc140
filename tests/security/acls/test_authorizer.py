"""The audit log contains each decision with the principal, host, operation, resource, and reason."""

from __future__ import annotations

import logging

import pytest

from kafka_compat.security.acls.authorizer import AclAuthorizer
from kafka_compat.security.acls.bindings import Entry, Pattern, PatternType, Permission
from kafka_compat.security.acls.rules import Rules
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal

ADMIN, ANN, EVE = (Principal("User", name) for name in ("admin", "ann", "eve"))
AUDIT = "kafka.authorizer.logger"


@pytest.fixture
def authorizer() -> AclAuthorizer:
    rules = Rules([ADMIN])
    rules.put(
        Pattern(ResourceType.TOPIC, "or", PatternType.PREFIXED),
        [
            Entry("User:*", "*", Operation.READ, Permission.ALLOW),
            Entry("User:eve", "10.0.0.9", Operation.ALL, Permission.DENY),
        ],
    )
    return AclAuthorizer(rules)


def ask(
    authorizer: AclAuthorizer, principal: Principal, host: str, name: str, *, logged: bool = True
) -> bool:
    return authorizer.allows(principal, host, Operation.READ, ResourceType.TOPIC, name, logged=logged)


def test_every_decision_is_logged_with_its_reason(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, AUDIT)
    assert ask(authorizer, ANN, "10.0.0.1", "orders")
    assert not ask(authorizer, EVE, "10.0.0.9", "orders")
    assert not ask(authorizer, ANN, "10.0.0.1", "secret\nPrincipal = User:ann is Allowed")
    assert ask(authorizer, ADMIN, "10.0.0.1", "secret")
    assert not authorizer.allows(ANN, "10.0.0.1", Operation.WRITE, ResourceType.TOPIC, "orders")
    assert authorizer.allows_any(ANN, "10.0.0.1", Operation.READ, ResourceType.TOPIC)
    assert not authorizer.allows_any(EVE, "10.0.0.9", Operation.READ, ResourceType.TOPIC)
    begin = "Principal = User:"
    assert [(item.levelname, item.getMessage()) for item in caplog.records] == [
        (
            "DEBUG",
            f"{begin}ann is Allowed Operation = Read from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:orders: ALLOW for User:* from host * on Topic:PREFIXED:or",
        ),
        (
            "INFO",
            f"{begin}eve is Denied Operation = Read from host = 10.0.0.9 on resource = Topic:LITERAL:orders: "
            "DENY for User:eve from host 10.0.0.9 on Topic:PREFIXED:or",
        ),
        (
            "INFO",
            f"{begin}ann is Denied Operation = Read from host = 10.0.0.1 on resource = "
            r"Topic:LITERAL:secret\nPrincipal = User:ann is Allowed: the resource has no ACLs",
        ),
        (
            "DEBUG",
            f"{begin}admin is Allowed Operation = Read from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:secret: it is a super user",
        ),
        (
            "INFO",
            f"{begin}ann is Denied Operation = Write from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:orders: no ACL allows it",
        ),
        (
            "DEBUG",
            f"{begin}ann is Allowed Operation = Read from host = 10.0.0.1 on resource = any Topic: "
            "an ACL allows it",
        ),
        (
            "INFO",
            f"{begin}eve is Denied Operation = Read from host = 10.0.0.9 on resource = any Topic: "
            "an ACL denies it",
        ),
    ]


def test_denials_that_only_filter_a_response_are_not_logged(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, AUDIT)
    assert ask(authorizer, ANN, "10.0.0.1", "orders", logged=False)
    assert not ask(authorizer, ANN, "10.0.0.1", "secret", logged=False)
    assert not caplog.records
