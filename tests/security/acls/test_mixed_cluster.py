"""ACLs of our broker and Apache Kafka 3.9.1 on one ZooKeeper: changes on either apply on both, and both write
identical nodes.

The brokers connect to each other as User:ANONYMOUS. Without ACLs for the cluster, every user may send
inter-broker requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.support.acl_requests import (
    ALL,
    ALLOW,
    AUTHORIZER,
    CLUSTER,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    acl,
    taking,
)
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

SIDES = ("ours", "genuine")


class Both:
    """Both brokers, and their ZooKeeper."""

    def __init__(self, directory: Any) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.zookeeper.start()
        connect = {
            "zookeeper.connect": f"{self.zookeeper.address}/kafka",
            "zookeeper.session.timeout.ms": "3000",
        }
        self.genuine = GenuineKafka(
            directory / "genuine", {**AUTHORIZER, **connect, "broker.id": "2"}, zookeeper=self.zookeeper
        )
        self.ours = KafkaCompatBroker(directory / "ours", {**AUTHORIZER, **connect})
        self.servers = {"ours": self.ours, "genuine": self.genuine}
        self.genuine.start()
        self.ours.start()
        self.nodes = KazooClient(f"{self.zookeeper.address}/kafka")
        self.nodes.start(20)

    def ask(self, side: str, api_key: ApiKey, request: Plain) -> Plain:
        with Connection(self.servers[side].address) as connection:
            return connection.ask(api_key, 3, request)

    def create(self, side: str, *acls: Plain) -> None:
        answer = self.ask(side, ApiKey.CREATE_ACLS, {"creations": list(acls)})
        assert {item["error_code"] for item in answer["results"]} == {ErrorCode.NONE}, answer

    def delete(self, side: str, **fields: object) -> int:
        """Delete the matching ACLs, and return their number."""
        answer = self.ask(side, ApiKey.DELETE_ACLS, {"filters": [taking(**fields)]})
        (found,) = answer["filter_results"]
        assert found["error_code"] == ErrorCode.NONE, found
        return len(found["matching_acls"])

    def describe(self, side: str) -> tuple[int, set[str]]:
        """Return the error code, and all ACLs as JSON."""
        answer = self.ask(side, ApiKey.DESCRIBE_ACLS, taking())
        found = set()
        for resource in answer["resources"]:
            found |= {
                json.dumps({**entry, **{key: value for key, value in resource.items() if key != "acls"}})
                for entry in resource["acls"]
            }
        return answer["error_code"], found

    def agree(self, count: int) -> None:
        """Wait until both brokers have the same `count` ACLs."""

        def same() -> bool:
            ours, genuine = (self.describe(side) for side in SIDES)
            return ours == genuine and len(ours[1]) == count

        wait_until(same, 20, f"both brokers have the same {count} ACLs")

    def until_refused(self, side: str) -> None:
        def refused() -> bool:
            return self.describe(side)[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

        wait_until(refused, 20, f"{side} rejects DescribeAcls")

    def node(self, path: str) -> tuple[bytes, int]:
        data, stat = self.nodes.get(path)
        return data, stat.version

    def notices(self, folder: str) -> list[bytes]:
        return [self.nodes.get(f"{folder}/{name}")[0] for name in sorted(self.nodes.get_children(folder))]

    def close(self) -> None:
        self.nodes.stop()
        self.nodes.close()
        self.ours.stop()
        self.genuine.stop()
        self.zookeeper.stop()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    both = Both(tmp_path_factory.mktemp("beside-genuine"))
    yield both
    both.close()


@pytest.fixture
def both(started: Both) -> Iterator[Both]:
    """Both brokers; all ACLs are deleted after the test."""
    yield started
    started.delete("genuine")
    started.agree(0)


def test_nodes_and_notifications_match_apache_kafkas(both: Both) -> None:
    kinds = (
        {"resource_type": TOPIC},
        {"resource_type": TRANSACTIONAL_ID, "permission_type": DENY, "operation": ALL},
        {"resource_type": GROUP, "host": "10.0.0.1", "principal": 'User:CN="é",O=b:c'},
        {"resource_type": TOPIC, "resource_pattern_type": PREFIXED, "operation": 12},
    )
    for kind in kinds:
        for side in SIDES:
            both.create(side, acl(f"of-{side}", **kind))
    both.agree(2 * len(kinds))
    for folder in ("/kafka-acl/Topic", "/kafka-acl/TransactionalId", "/kafka-acl/Group"):
        assert both.node(f"{folder}/of-ours") == both.node(f"{folder}/of-genuine")
    extended = "/kafka-acl-extended/prefixed/Topic"
    assert both.node(f"{extended}/of-ours") == both.node(f"{extended}/of-genuine")
    for folder in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        told = both.notices(folder)
        ours = [data.replace(b"of-ours", b"*") for data in told if b"of-ours" in data]
        assert ours == [data.replace(b"of-genuine", b"*") for data in told if b"of-genuine" in data]
        assert ours
    for side in SIDES:
        both.create(side, acl("versions", host=side))
        both.agree(2 * len(kinds) + 1 + SIDES.index(side))
    assert both.node("/kafka-acl/Topic/versions")[1] == 1
    assert both.delete("ours") == 2 * len(kinds) + 2
    both.agree(0)
    assert both.nodes.get_children("/kafka-acl/Topic") == []


def test_paths_match_those_that_apache_kafka_creates(both: Both) -> None:
    """Our broker creates the paths itself if it is the first broker of the cluster."""
    alone = KafkaCompatBroker(
        both.ours.directory / "alone", {**AUTHORIZER, "zookeeper.connect": f"{both.zookeeper.address}/alone"}
    )
    alone.start()
    try:
        client = KazooClient(both.zookeeper.address)
        client.start(20)
        try:
            assert tree(client, "/alone") == tree(client, "/kafka")
        finally:
            client.stop()
            client.close()
    finally:
        alone.stop()


def tree(client: KazooClient, chroot: str) -> set[str]:
    """The paths of all ACL nodes except change notices."""
    found = set()
    paths = [name for name in client.get_children(chroot) if name.startswith("kafka-acl")]
    while paths:
        path = paths.pop()
        if "acl_changes_" not in path:
            found.add(path)
            paths += [f"{path}/{name}" for name in client.get_children(f"{chroot}/{path}")]
    return found


def test_changes_on_either_broker_apply_on_both(both: Both) -> None:
    for one, other in (SIDES, SIDES[::-1]):
        cluster = {"resource_type": CLUSTER, "principal": "User:*", "permission_type": ALLOW}
        both.create(one, acl("kafka-cluster", **{**cluster, "operation": ALL}))
        both.agree(1)
        both.create(one, acl("kafka-cluster", **{**cluster, "operation": DESCRIBE, "permission_type": DENY}))
        for side in SIDES:
            both.until_refused(side)
        assert both.delete(other, operation=DESCRIBE) == 1
        both.agree(1)
        assert both.delete(one) == 1
        both.agree(0)


def test_concurrent_changes_to_one_pattern_are_both_kept(both: Both) -> None:
    count = 8
    connections = [(side, Connection(both.servers[side].address)) for side in SIDES]
    for number in range(count):
        for side, connection in connections:
            creation = acl("contested", host=f"{side}-{number}", operation=WRITE)
            connection.begin(ApiKey.CREATE_ACLS, 3, {"creations": [creation]})
        for _, connection in connections:
            (result,) = connection.finish(ApiKey.CREATE_ACLS, 3)["results"]
            assert result["error_code"] == ErrorCode.NONE
    for _, connection in connections:
        connection.close()
    both.agree(2 * count)
    named = {
        "resource_type_filter": TOPIC,
        "resource_name_filter": "contested",
        "pattern_type_filter": LITERAL,
    }
    assert both.delete("genuine", **named) == 2 * count
    both.agree(0)


def test_a_restarted_broker_reads_the_changes_made_while_it_was_down(both: Both) -> None:
    both.create("ours", acl("kept"), acl("kept", resource_pattern_type=PREFIXED))
    both.ours.kill()
    both.create("genuine", acl("added"))
    both.delete("genuine", resource_name_filter="kept", pattern_type_filter=PREFIXED)
    both.ours.start()
    both.agree(2)


def test_changes_during_a_lost_session_are_kept(both: Both) -> None:
    """After its session expires, our broker reads all ACLs again in the new session."""
    import os
    import signal

    both.create("ours", acl("before"))
    both.agree(1)
    os.kill(both.ours.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not both.nodes.exists("/brokers/ids/1"), 30, "the session of our broker expires")
        both.delete("genuine")
        both.create("genuine", acl("after"))
    finally:
        os.kill(both.ours.pid, signal.SIGCONT)
    both.agree(1)
