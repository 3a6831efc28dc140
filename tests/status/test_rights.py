"""kafka-compat status logs in by a client's settings, and says what its user may not see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker, run_kafka_compat

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Guarded(NamedTuple):
    """A broker, and its listener for users."""

    broker: KafkaCompatBroker
    address: str


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """The admin may do everything, and alice see one topic."""
    open_port, port = free_port(), free_port()
    users = 'user_admin="admin" user_alice="alice"'
    broker = KafkaCompatBroker(
        tmp_path / "guarded",
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{_MODULE} required username="admin" password="admin" {users};'
            ),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin",
        },
        port=open_port,
    )
    broker.start()
    yield Guarded(broker, f"127.0.0.1:{port}")
    broker.stop()


def asked(directory: Path, address: str, user: str, password: str) -> tuple[int, dict[str, Any], str]:
    file = directory / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_MODULE} required username="{user}" password="{password}";\n'
    )
    where = ("--bootstrap-server", address, "--command-config", str(file))
    done = run_kafka_compat("status", *where, "--json")
    return done.returncode, json.loads(done.stdout), done.stderr


def test_data_unavailable_without_permission_is_listed_as_missing(guarded: Guarded, tmp_path: Path) -> None:
    address = guarded.address
    admin = AdminClient(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admin",
        }
    )
    for future in admin.create_topics([NewTopic("shown", 1), NewTopic("hidden", 1)]).values():
        future.result(30)
    right = AclBinding(
        ResourceType.TOPIC,
        "shown",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    for stored in admin.create_acls([right]).values():
        stored.result(30)

    code, found, _ = asked(tmp_path, address, "admin", "admin")
    assert (code, found["not_known"]) == (0, [])
    assert [topic["name"] for topic in found["topics"]] == ["hidden", "shown"]
    code, found, _ = asked(tmp_path, address, "alice", "alice")
    assert code == 0
    (topic,) = found["topics"]
    assert (topic["name"], topic["records"], topic["disk_bytes"], topic["min_insync_replicas"]) == (
        "shown",
        0,
        None,
        None,
    )
    assert found["not_known"] == [
        "sizes and disks of broker 1: CLUSTER_AUTHORIZATION_FAILED",
        "min.insync.replicas of some topics: no permission to describe their settings",
    ]


def test_a_wrong_password_is_reported(guarded: Guarded, tmp_path: Path) -> None:
    address = guarded.address
    code, found, told = asked(tmp_path, address, "alice", "guessed")
    assert code == 2 and "SASL_AUTHENTICATION_FAILED" in found["error"]
    assert f"no broker can be reached: {address}: SASL_AUTHENTICATION_FAILED" in told
    assert "guessed" not in told
