"""Authorization of the web console: it shows only resources that its principal may describe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafka_compat.testing import BrokerFailed, KafkaBroker
from tests.metrics.groups import commit, transaction
from tests.page.site import PAGE, Site

VIEWER = "User:viewer"
SETTINGS = {
    **PAGE,
    "kafka.compat.http.page.principal": VIEWER,
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(SETTINGS) as running:
        for topic in ("open.a", "open.b", "closed"):
            running.create_topic(topic)
        address = running.bootstrap_servers
        commit(address, "open.group", {("open.a", 0): 0, ("closed", 0): 0})
        commit(address, "closed.group", {("open.a", 0): 0})
        transaction(address, "open.a", [1], end="commit")
        yield running
        assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def site(broker: KafkaBroker) -> Site:
    return Site.of(broker)


def allow(broker: KafkaBroker, kind: ResourceType, name: str, operation: AclOperation, pattern: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    binding = AclBinding(
        kind, name, ResourcePatternType[pattern], VIEWER, "*", operation, AclPermissionType.ALLOW
    )
    for stored in admin.create_acls([binding]).values():
        stored.result(30)


def test_resources_are_hidden_without_permission(site: Site) -> None:
    assert site.rows("topics", "topics") == []
    assert site.rows("groups", "groups") == []
    assert site.rows("transactions", "transactions") == []
    told = site.data("overview")
    assert (told["topics"], told["groups"], told["disks"], told["busiest_topics"]) == (0, 0, [], [])
    for path, query in [
        ("topic", {"name": "closed"}),
        ("topic", {"name": "there-is-none"}),
        ("topic-settings", {"name": "closed"}),
        ("group", {"name": "closed.group"}),
        ("disks", {}),
        ("clients", {}),
        ("refused", {}),
        ("logs", {}),
        ("broker", {"id": "1"}),
    ]:
        page = site.get(path, **query)
        assert page.status == 403, path
        assert "closed.group" not in page.shown.replace("the group closed.group", "")
    assert (
        "User:viewer from 127.0.0.1 may not DESCRIBE the topic closed"
        in site.get("topic", name="closed").text
    )


def test_resources_are_shown_with_permission(site: Site, broker: KafkaBroker) -> None:
    allow(broker, ResourceType.TOPIC, "open.", AclOperation.DESCRIBE, "PREFIXED")
    allow(broker, ResourceType.GROUP, "open.group", AclOperation.DESCRIBE, "LITERAL")
    assert [row["name"] for row in site.rows("topics", "topics")] == ["open.a", "open.b"]
    assert [row["name"] for row in site.rows("groups", "groups")] == ["open.group"]
    group = site.data("group", name="open.group")
    assert [row["topic"] for row in group["list"]["rows"]] == ["open.a"]
    assert [row["name"] for row in site.data("topic", name="open.a")["groups"]] == ["open.group"]
    assert site.get("topic-settings", name="open.a").status == 403
    allow(broker, ResourceType.TOPIC, "open.", AclOperation.DESCRIBE_CONFIGS, "PREFIXED")
    assert site.get("topic-settings", name="open.a").status == 200
    allow(broker, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE, "LITERAL")
    for path in ("disks", "clients", "refused", "logs"):
        assert site.get(path).status == 200
    assert site.data("overview")["disks"]


def test_denied_requests_are_listed_as_rejected(site: Site, broker: KafkaBroker) -> None:
    allow(broker, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE, "LITERAL")
    assert site.get("topic", name="closed").status == 403
    reasons = [row["reason"] for row in site.rows("refused", "refused", q="closed")]
    assert any("User:viewer may not Describe Topic:LITERAL:closed" in reason for reason in reasons)


def test_an_invalid_principal_is_rejected() -> None:
    settings = {**PAGE, "kafka.compat.http.page.principal": "viewer"}
    with pytest.raises(BrokerFailed, match=r"page\.principal=viewer: expected a type and a name"):
        KafkaBroker(settings).start()


def test_the_web_console_requires_an_http_listener() -> None:
    settings = {**PAGE, "kafka.compat.http.listener": "", "kafka.compat.control.enable": "false"}
    with pytest.raises(BrokerFailed, match=r"page\.enable=true requires an HTTP listener"):
        KafkaBroker(settings).start()
