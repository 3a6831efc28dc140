"""Permissions for groups with the consumer protocol (KIP-848), compared with Apache Kafka 4.4 in campaigns.

The guest connects from another address than the administrator. Denials are added one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import Operation, ResourceType
from tests.conformance.wire import Connection, Plain
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

GUEST_HOST = "127.0.0.2"
OPEN = {"allow.everyone.if.no.acl.found": "true"}
_DENY, _ALLOW, _LITERAL = 2, 3, 3
ALL_OPERATIONS, WITHOUT_READ = 3400, 3392
"""Authorized operations of a group: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS."""


@pytest.fixture(scope="module", params=campaign.sides())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "ours":
        name = "kafka.security.authorizer.AclAuthorizer"
        running: Server = KafkaCompatBroker(directory, {**OPEN, "authorizer.class.name": name})
    else:
        name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        settings = {**OPEN, "authorizer.class.name": name}
        running = GenuineKafka(directory, settings, version=NEWEST_VERSION, mode="kraft")
    running.start(180)
    yield running
    running.stop()


class World:
    """A topic and a group with one member, and connections of the administrator and the guest."""

    def __init__(self, server: Server, name: str) -> None:
        self.admin, self.guest = Connection(server.address), Connection(server.address, source=GUEST_HOST)
        self.topic, self.group = f"{name}-topic", f"{name}-group"
        topic = {"name": self.topic, "num_partitions": 2, "replication_factor": 1}
        self.admin.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})
        self.admin.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": [self.group]})
        self.epoch = 0
        wait_until(self._has_joined, 30, "the assignment of the first member")

    def _has_joined(self) -> bool:
        """Join the group, and return whether its coordinator knows the topic."""
        joined = self.join(self.admin)
        self.epoch = joined["member_epoch"]
        return joined["error_code"] == 0 and bool(joined["assignment"]["topic_partitions"])

    def join(self, connection: Connection, group: str | None = None, **fields: Any) -> Plain:
        request = {
            "group_id": group or self.group,
            "member_id": "member",
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [self.topic],
            "topic_partitions": [],
            **fields,
        }
        return connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def describe(self, *groups: str) -> list[Plain]:
        request = {"group_ids": list(groups) or [self.group], "include_authorized_operations": True}
        found: list[Plain] = self.guest.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)["groups"]
        return found

    def deny(self, kind: ResourceType, name: str, operation: Operation) -> None:
        acl = {"resource_type": kind, "resource_name": name, "resource_pattern_type": _LITERAL}
        denied = {"host": GUEST_HOST, "operation": operation, "permission_type": _DENY}
        allowed = {"host": "*", "operation": Operation.ALL, "permission_type": _ALLOW}
        creations = [{**acl, "principal": "User:ANONYMOUS", **each} for each in (denied, allowed)]
        done = self.admin.ask(ApiKey.CREATE_ACLS, 3, {"creations": creations})
        assert [each["error_code"] for each in done["results"]] == [0, 0]
        wait_until(lambda: self._acls(kind, name) >= {_ALLOW, _DENY}, 30, "the ACLs")

    def _acls(self, kind: ResourceType, name: str) -> set[int]:
        """Return the permission types of a resource's ACLs."""
        request = {
            "resource_type_filter": kind,
            "resource_name_filter": name,
            "pattern_type_filter": _LITERAL,
            "principal_filter": None,
            "host_filter": None,
            "operation": Operation.ANY,
            "permission_type": 1,
        }
        resources = self.admin.ask(ApiKey.DESCRIBE_ACLS, 3, request)["resources"]
        return {acl["permission_type"] for resource in resources for acl in resource["acls"]}


def test_a_heartbeat_requires_read_on_the_group(server: Server) -> None:
    world = World(server, "read")
    assert world.describe()[0]["authorized_operations"] == ALL_OPERATIONS
    world.deny(ResourceType.GROUP, world.group, Operation.READ)
    answer = world.join(world.guest)
    assert (answer["error_code"], answer["error_message"]) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    (described,) = world.describe()
    assert (described["error_code"], described["authorized_operations"]) == (0, WITHOUT_READ)


def test_a_description_requires_describe_on_the_group(server: Server) -> None:
    world = World(server, "describe")
    world.deny(ResourceType.GROUP, world.group, Operation.DESCRIBE)
    found = {each["group_id"]: each for each in world.describe(world.group, "absent", "")}
    denied, absent, empty = found[world.group], found["absent"], found[""]
    assert (denied["error_code"], denied["members"]) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    assert absent["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
    assert absent["error_message"] == "Group absent not found."
    assert (empty["error_code"], empty["error_message"]) == (ErrorCode.INVALID_GROUP_ID, None)


def test_names_of_topics_require_describe(server: Server) -> None:
    world = World(server, "topics")
    world.deny(ResourceType.TOPIC, world.topic, Operation.DESCRIBE)
    for group, epoch in ((None, 0), (None, -1), ("topics-new", 0)):
        answer = world.join(world.guest, group, member_epoch=epoch)
        assert answer["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (answer["error_message"], answer["member_id"]) == (None, None)
    silent: Plain = {"subscribed_topic_names": None, "rebalance_timeout_ms": -1, "topic_partitions": None}
    assert world.join(world.guest, member_epoch=world.epoch, **silent)["error_code"] == 0
    (described,) = world.describe()
    assert described["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (described["group_state"], described["members"]) == ("", [])
    assert described["error_message"]


def test_describe_groups_reports_a_consumer_group_as_dead(server: Server) -> None:
    world = World(server, "dead")
    request = {"groups": [world.group], "include_authorized_operations": True}
    for version, code in ((5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        (found,) = world.admin.ask(ApiKey.DESCRIBE_GROUPS, version, request)["groups"]
        assert (found["error_code"], found["group_state"], found["members"]) == (code, "Dead", [])
    assert found["error_message"] == f"Group {world.group} is not a classic group."
