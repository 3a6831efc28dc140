"""With zookeeper.set.acl, our ZooKeeper nodes have the same ACLs as those that Apache Kafka creates."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.support import campaign, java
from tests.support.java_tools import JavaTools
from tests.support.node_acls import OPEN, node_acls
from tests.support.process import wait_until
from tests.support.secure_zookeeper import SecureZooKeeper, jaas_file, login
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, run_kafka_compat

USER, PASSWORD = "kafka", 'broker "secret" \\ ü'
DELETED = ("admin/delete_topics", "brokers/topics", "config/topics")
OWNER = f"sasl:{USER}:ALL"
WORLD_READS = (OWNER, "world:anyone:READ")


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    server = SecureZooKeeper(tmp_path_factory.mktemp("zookeeper"), {USER: PASSWORD})
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def admin(zookeeper: SecureZooKeeper) -> Iterator[KazooClient]:
    client = zookeeper.all_powerful()
    client.start(20)
    yield client
    client.stop()
    client.close()


@pytest.fixture(scope="module")
def jaas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jaas_file(tmp_path_factory.mktemp("jaas") / "jaas.conf", USER, PASSWORD)


def _settings(zookeeper: SecureZooKeeper, chroot: str, set_acl: bool = True) -> dict[str, str]:
    return {
        "broker.id": "1",
        "zookeeper.connect": zookeeper.address + chroot,
        "zookeeper.set.acl": str(set_acl).lower(),
        "zookeeper.session.timeout.ms": "6000",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }


def _ours(
    directory: Path, zookeeper: SecureZooKeeper, chroot: str, set_acl: bool = True
) -> KafkaCompatBroker:
    settings = _settings(zookeeper, chroot, set_acl)
    return KafkaCompatBroker(
        directory,
        settings | {"kafka.compat.zookeeper.sasl.jaas.config": login(USER, PASSWORD)},
    )


def _use(server: Server, tools: JavaTools) -> None:
    """Make the broker create nodes of every kind: topics, settings, credentials, producer ids, deletions."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": server.address})
    topics = [NewTopic("kept", 2, 1, config={"retention.ms": "1000000"}), NewTopic("dropped", 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result(30)
    for kind, name, setting in (
        ("users", "--entity-name=alice", "SCRAM-SHA-256=[iterations=4096,password=secret]"),
        ("users", "--entity-default", "consumer_byte_rate=1000"),
        ("clients", "--entity-name=app", "consumer_byte_rate=1000"),
        ("ips", "--entity-name=127.0.0.9", "connection_creation_rate=10"),
        ("brokers", "--entity-name=1", "log.cleaner.threads=2"),
        ("brokers", "--entity-default", "log.cleaner.threads=2"),
        ("topics", "--entity-name=kept", "retention.ms=2000000"),
    ):
        wanted = ("--alter", "--entity-type", kind, name, "--add-config", setting)
        printed = tools.run("kafka-configs", "--bootstrap-server", server.address, *wanted)
        assert printed.code == 0, printed
    producer = Producer({"bootstrap.servers": server.address, "enable.idempotence": True})
    producer.produce("kept", b"x")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": server.address, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["kept"])
    assert consumer.poll(30) is not None
    consumer.commit(asynchronous=False)
    consumer.close()
    admin.delete_topics(["dropped"])["dropped"].result(30)


def _migrate(zookeeper: SecureZooKeeper, chroot: str, jaas: Path, to: str) -> None:
    """Run ZkSecurityMigrator like zookeeper-security-migration.sh."""
    line = java.command(
        "kafka.admin.ZkSecurityMigrator",
        *(f"--zookeeper.acl={to}", f"--zookeeper.connect={zookeeper.address}{chroot}"),
        jvm_options=[
            *java.quick_options(),
            f"-Djava.security.auth.login.config={jaas}",
            "-Dfile.encoding=UTF-8",
        ],
    )
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def _dropped(client: KazooClient) -> list[str]:
    """The remaining nodes of the topics that are being deleted."""
    nodes = [f"/{name}/{path}/dropped" for name in ("ours", "genuine") for path in DELETED]
    return [node for node in nodes if client.exists(node) is not None]


def _numbers_aside(acls: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Merge numbered notices, because brokers may create different numbers of them."""
    return {re.sub(r"_\d{10}$", "_N", path): acl for path, acl in acls.items()}


def test_every_node_has_the_same_acl_as_in_apache_kafka(
    zookeeper: SecureZooKeeper, admin: KazooClient, jaas: Path, tmp_path: Path
) -> None:
    genuine = GenuineKafka(
        tmp_path / "genuine",
        _settings(zookeeper, "/genuine"),
        zookeeper=zookeeper,
        heap="256M",
        jvm_options=[f"-Djava.security.auth.login.config={jaas}", "-Dfile.encoding=UTF-8"],
    )
    ours = _ours(tmp_path / "ours", zookeeper, "/ours")
    tools = JavaTools()
    try:
        genuine.launch()
        ours.start()
        genuine.wait_ready()
        for server in (ours, genuine):
            _use(server, tools)
        wait_until(lambda: not _dropped(admin), 30, "the nodes of the deleted topics are removed")
        as_genuine = _numbers_aside(node_acls(admin, "/genuine"))
        as_ours = _numbers_aside(node_acls(admin, "/ours"))
    finally:
        tools.close()
        ours.stop()
        genuine.stop()
    assert as_ours == as_genuine
    assert as_ours["/"] == as_ours["/controller"] == as_ours["/brokers/ids/1"] == WORLD_READS
    assert as_ours["/config/changes/config_change_N"] == WORLD_READS
    assert as_ours["/config/users"] == as_ours["/config/brokers"] == (OWNER,)
    assert as_ours["/consumers"] == OPEN


@pytest.mark.skipif(not campaign.enabled(), reason="slow: with --campaign")
def test_kafkas_migration_tool_protects_and_unprotects_our_nodes(
    zookeeper: SecureZooKeeper, admin: KazooClient, jaas: Path, tmp_path: Path
) -> None:
    """The steps of Kafka's documentation: log in to ZooKeeper, set zookeeper.set.acl, run the tool."""
    broker = _ours(tmp_path / "broker", zookeeper, "/migrated", set_acl=False)
    broker.start()
    try:
        _produce(broker, "before")
        before = node_acls(admin, "/migrated")
        # This includes the root of the chroot, because ZooKeeper's own nodes are outside.
        assert set(before.values()) == {OPEN}

        broker.overrides["zookeeper.set.acl"] = "true"
        broker.restart()
        _produce(broker, "between")
        mixed = node_acls(admin, "/migrated")
        assert mixed["/brokers/topics/before"] == mixed["/brokers/topics"] == OPEN
        assert mixed["/brokers/topics/between"] == mixed["/brokers/ids/1"] == WORLD_READS

        _migrate(zookeeper, "/migrated", jaas, "secure")
        secure = node_acls(admin, "/migrated")
        assert secure.pop("/consumers") == OPEN
        assert {path for path, acl in secure.items() if acl == (OWNER,)} >= {
            "/config/users",
            "/config/brokers",
        }
        assert set(secure.values()) == {WORLD_READS, (OWNER,)}
        _produce(broker, "after")
        broker.restart(kill=True)
        _produce(broker, "after")

        broker.overrides["zookeeper.set.acl"] = "false"
        broker.restart()
        _migrate(zookeeper, "/migrated", jaas, "unsecure")
        assert set(node_acls(admin, "/migrated").values()) == {OPEN}
        del broker.overrides["kafka.compat.zookeeper.sasl.jaas.config"]
        broker.restart()
        _produce(broker, "before")
    finally:
        broker.stop()


def test_a_broker_without_credentials_does_not_start_and_reports_the_reason(
    zookeeper: SecureZooKeeper, tmp_path: Path
) -> None:
    broker = _ours(tmp_path / "broker", zookeeper, "/closed")
    broker.start()
    broker.stop()
    settings = _settings(zookeeper, "/closed", set_acl=False)
    overrides = [f"--override={name}={value}" for name, value in settings.items()]
    folder = f"--override=log.dirs={tmp_path / 'stranger'}"
    stranger = run_kafka_compat("serve", "--port=0", folder, *overrides)
    assert stranger.returncode == 2
    assert "/config/users: the node's ACL in ZooKeeper denies this" in stranger.stderr
    assert "Traceback" not in stranger.stderr


def _produce(broker: KafkaCompatBroker, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(topic, b"x")
    assert producer.flush(30) == 0


def test_a_broker_that_zookeeper_rejects_after_startup_logs_the_rejection_and_recovers(
    tmp_path: Path,
) -> None:
    users = {USER: PASSWORD}
    server = SecureZooKeeper(tmp_path / "zookeeper", users)
    server.start()
    broker = _ours(tmp_path / "broker", server, "")
    try:
        broker.start()
        users[USER] = "another"
        server.restart(kill=True)
        wait_until(
            lambda: "Could not re-register the broker: LoginFailed(" in _log(broker),
            60,
            "the rejected login is logged",
        )
        assert f"ZooKeeper at 127.0.0.1 rejected the login of {USER}" in _log(broker)
        assert "kafka.compat.zookeeper.sasl.jaas.config" in _log(broker)
        assert "another" not in _log(broker)
        assert PASSWORD not in _log(broker)
        users[USER] = PASSWORD
        server.restart(kill=True)
        wait_until(lambda: _is_registered(server), 60, "the broker is registered again")
        _produce(broker, "after")
    finally:
        broker.stop()
        server.stop()


def _log(broker: KafkaCompatBroker) -> str:
    return broker.log.read_text()


def _is_registered(server: SecureZooKeeper) -> bool:
    client = server.all_powerful()
    client.start(20)
    try:
        return client.exists("/brokers/ids/1") is not None
    finally:
        client.stop()
        client.close()
