"""The files of `kafka-compat security init` work unchanged: our broker and Apache Kafka start with them, and
real clients connect."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from kafka_compat.config.properties import parse_properties
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
from kafka_compat.security import first_users
from tests.support import campaign, java
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper, run_kafka_compat


class Provisioned(NamedTuple):
    """A server, and the directory of its settings and client files."""

    server: Server
    folder: Path

    def client(self, file: str, user: str = "admin") -> Path:
        return self.folder / "clients" / user / file

    def settings(self, file: str, user: str = "admin") -> dict[str, Any]:
        """The client arguments in a Python file."""
        (found,) = (
            value for name, value in runpy.run_path(str(self.client(file, user))).items() if name.isupper()
        )
        assert isinstance(found, dict)
        return found

    def librdkafka(self, user: str = "admin") -> dict[str, str]:
        lines = self.client("librdkafka.conf", user).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


class _Genuine(GenuineKafka):
    def properties(self) -> dict[str, str]:
        return {
            name: value for name, value in super().properties().items() if name != "listeners"
        } | self.overrides

    def _knows_controller(self) -> bool:
        return True  # The listener requires a password, so skip the query.


def _provision(folder: Path, port: int) -> dict[str, str]:
    ran = run_kafka_compat("security", "init", str(folder), "--port", str(port), "--user", "alice")
    assert ran.returncode == 0, ran.stderr
    properties = parse_properties((folder / "server.properties").read_bytes())
    return {name: item.value for name, item in properties.items()}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provisioned]:
    """Our broker, started with `kafka-compat serve server.properties`."""
    folder = tmp_path_factory.mktemp("ours")
    port = free_port()
    _provision(folder, port)
    server = KafkaCompatBroker(folder / "broker", port=port, arguments=[str(folder / "server.properties")])
    server.overrides = {"group.initial.rebalance.delay.ms": "0"}
    server.start()
    yield Provisioned(server, folder)
    server.stop()


@pytest.fixture(scope="module")
def genuine_secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provisioned]:
    """Apache Kafka with the same settings. The fixture stores the users in ZooKeeper."""
    folder = tmp_path_factory.mktemp("genuine")
    port = free_port()
    settings = _provision(folder, port)
    zookeeper = ZooKeeper(folder / "zookeeper")
    zookeeper.start()

    async def take_over_users() -> None:
        store = await ZooKeeperMetadataStore.connect(zookeeper.address, session_timeout_ms=10_000)
        await first_users.take_over(settings.pop(first_users.SETTING), store)
        await store.close()

    asyncio.run(take_over_users())
    server = _Genuine(folder / "kafka", settings, port=port, zookeeper=zookeeper)
    server.start()
    yield Provisioned(server, folder)
    server.stop()
    zookeeper.stop()


@pytest.fixture(params=campaign.sides())
def provisioned(request: pytest.FixtureRequest) -> Provisioned:
    found = request.getfixturevalue({"ours": "ours", "genuine": "genuine_secured"}[request.param])
    assert isinstance(found, Provisioned)
    return found


def produced(settings: Mapping[str, Any], topic: str, *values: bytes) -> None:
    """Produce with librdkafka. Raises RuntimeError with its first error."""
    failed: list[str] = []
    producer = Producer({"message.timeout.ms": 20_000, **settings})
    for value in values:
        producer.produce(topic, value, callback=lambda error, _: failed.append(str(error)) if error else None)
    assert producer.flush(30) == 0
    if failed:
        raise RuntimeError(failed[0])


def test_confluent_kafka_connects_with_its_provisioned_settings(provisioned: Provisioned) -> None:
    settings = provisioned.librdkafka()
    produced(settings, "librdkafka", b"1", b"2")
    consumer = Consumer({**settings, "group.id": "librdkafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    found: list[bytes | None] = []
    while len(found) < 2:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        found.append(message.value())
    consumer.close()
    assert set(found) == {b"1", b"2"}


def test_kcat_connects_with_its_provisioned_settings(provisioned: Provisioned) -> None:
    produced(provisioned.librdkafka(), "kcat", b"hello")
    command = ["kcat", "-F", str(provisioned.client("librdkafka.conf")), "-C", "-t", "kcat", "-e", "-q"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "hello\n"


def test_kafka_python_connects_with_its_provisioned_settings(provisioned: Provisioned) -> None:
    settings = provisioned.settings("kafka_python_settings.py")
    producer = KafkaProducer(**settings)
    producer.send("kafka-python", b"hello").get(30)
    producer.close()
    consumer = KafkaConsumer("kafka-python", auto_offset_reset="earliest", **settings)
    assert next(consumer).value == b"hello"
    consumer.close()


async def test_aiokafka_connects_with_its_provisioned_settings(provisioned: Provisioned) -> None:
    async with AIOKafkaProducer(**provisioned.settings("aiokafka_settings.py")) as producer:
        sent = await producer.send_and_wait("aiokafka", b"hello")
    assert sent.offset == 0


def test_kafkas_own_tools_connect_with_their_provisioned_settings(provisioned: Provisioned) -> None:
    properties = str(provisioned.client("client.properties"))
    address = provisioned.librdkafka()["bootstrap.servers"]
    common = ("--bootstrap-server", address)
    java.run("kafka-topics", *common, "--command-config", properties, "--create", "--topic", "tools")
    java.run(
        *("kafka-console-producer", *common, "--producer.config", properties, "--topic", "tools"),
        stdin="hello\n",
    )
    consumed = java.run(
        *("kafka-console-consumer", *common, "--consumer.config", properties, "--topic", "tools"),
        *("--from-beginning", "--max-messages", "1"),
    )
    assert consumed.stdout == "hello\n"


def test_a_wrong_password_is_rejected(provisioned: Provisioned) -> None:
    def refused(settings: Mapping[str, Any]) -> int:
        errors: list[int] = []
        told: Any = lambda error: errors.append(error.code())  # noqa: E731
        client = AdminClient({**settings, "error_cb": told})
        while not errors:
            client.poll(1)
        return errors[0]

    settings = provisioned.librdkafka()
    assert refused({**settings, "sasl.password": "another"}) == KafkaError._AUTHENTICATION
    assert refused({**settings, "sasl.username": "nobody"}) == KafkaError._AUTHENTICATION
    own_ca = {name: value for name, value in settings.items() if name != "ssl.ca.location"}
    assert refused(own_ca) in (KafkaError._SSL, KafkaError._TRANSPORT)


def allow(admin: dict[str, str], user: str, topic: str) -> None:
    """Allow a user to write to a topic."""
    acl = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    client = AdminClient(dict(admin))
    (answer,) = client.create_acls([acl]).values()
    answer.result(30)


def test_another_user_can_do_only_what_an_acl_allows(provisioned: Provisioned) -> None:
    admin, alice = provisioned.librdkafka(), provisioned.librdkafka("alice")
    produced(admin, "allowed", b"1")
    with pytest.raises(RuntimeError, match="authorization"):
        produced(alice, "allowed", b"2")
    allow(admin, "alice", "allowed")
    produced(alice, "allowed", b"3")


def test_users_acls_and_password_changes_survive_a_crash(ours: Provisioned) -> None:
    admin, alice = ours.librdkafka(), ours.librdkafka("alice")
    produced(admin, "crash", b"0")
    allow(admin, "alice", "crash")
    produced(alice, "crash", b"1")
    changed = UserScramCredentialUpsertion(
        "alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"changed"
    )
    client = AdminClient(dict(admin))
    (answer,) = client.alter_user_scram_credentials([changed]).values()
    answer.result(30)
    ours.server.restart(kill=True)
    produced({**alice, "sasl.password": "changed"}, "crash", b"2")
    with pytest.raises(RuntimeError):
        produced({**alice, "message.timeout.ms": "3000"}, "crash", b"3")
