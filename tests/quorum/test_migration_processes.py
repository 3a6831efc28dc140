"""Three brokers that move from a real ZooKeeper to a quorum and back, under load, with a killed copier."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafka_compat.cluster.metadata_migration import SETTING
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
from tests.quorum.migrating import nodes_of
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker, ZooKeeper, run_kafka_compat
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="takes minutes: with --campaign")

IDS = (1, 2, 3)
TOPIC, COPY = "orders", "copies"
_SAME = ("/config/topics", "/config/users", "/config/clients", "/kafka-acl", "/cluster")
_SECONDS = 120


class Cluster:
    def __init__(self, directory: Path) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self._controller_ports = {node_id: free_port() for node_id in IDS}
        self.brokers: dict[int, KafkaCompatBroker] = {}
        for node_id in IDS:
            port = free_port()
            settings = {
                "broker.id": str(node_id),
                "offsets.topic.num.partitions": "3",
                "offsets.topic.replication.factor": "3",
                "transaction.state.log.num.partitions": "3",
                "transaction.state.log.replication.factor": "3",
                "min.insync.replicas": "2",
                "zookeeper.session.timeout.ms": "4000",
                "broker.session.timeout.ms": "4000",
                "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                "super.users": "User:ANONYMOUS",
                "group.initial.rebalance.delay.ms": "0",
            }
            self.brokers[node_id] = KafkaCompatBroker(
                directory / str(node_id), settings, port=port, arguments=["--verbose"]
            )
            self.use(node_id, zookeeper=True, quorum=False)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def use(self, node_id: int, *, zookeeper: bool, quorum: bool) -> None:
        """Set the stores of a broker, for its next start."""
        broker = self.brokers[node_id]
        settings = broker.overrides
        for name in list(settings):
            if name.startswith(
                ("zookeeper.connect", "zookeeper.metadata", "process.", "controller.", "node.")
            ):
                del settings[name]
        settings["listeners"] = f"PLAINTEXT://127.0.0.1:{broker.port}"
        if zookeeper:
            settings["zookeeper.connect"] = f"{self.zookeeper.address}/cluster"
        if quorum:
            settings["listeners"] += f",CONTROLLER://127.0.0.1:{self._controller_ports[node_id]}"
            settings |= {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(
                    f"{voter}@127.0.0.1:{port}" for voter, port in self._controller_ports.items()
                ),
            }
        if zookeeper and quorum:
            settings["zookeeper.metadata.migration.enable"] = "true"

    async def restart_all(self, *, zookeeper: bool, quorum: bool) -> None:
        """Restart the brokers one after another, each when the others are in sync again."""
        for node_id, broker in self.brokers.items():
            await until(self.is_in_sync, _SECONDS)
            await asyncio.to_thread(broker.stop)
            self.use(node_id, zookeeper=zookeeper, quorum=quorum)
            await asyncio.to_thread(broker.start)
        await until(self.is_in_sync, _SECONDS)

    def is_in_sync(self) -> bool:
        try:
            found = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=5)
        except KafkaException:
            return False
        partitions = [item for topic in found.topics.values() for item in topic.partitions.values()]
        return len(found.brokers) == 3 and all(len(item.isrs) == 3 for item in partitions)

    def log(self) -> dict[int, str]:
        return {node_id: broker.log.read_text() for node_id, broker in self.brokers.items()}

    async def move(self, name: str, *, kills_copier: bool) -> None:
        """Move the metadata, and kill the first copier."""
        before = {node_id: len(text) for node_id, text in self.log().items()}
        in_text = {"quorum": "the metadata quorum", "zookeeper": "ZooKeeper"}[name]

        def copier(line: str) -> int | None:
            return next((key for key, text in self.log().items() if line in text[before[key] :]), None)

        altered = run_kafka_compat(
            "configs",
            "--bootstrap-server",
            self.bootstrap,
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-default",
            "--add-config",
            f"{SETTING}={name}",
        )
        assert altered.returncode == 0, altered.stderr
        begun = f"Moving the metadata of the cluster to {in_text}"
        await until(lambda: copier(begun) is not None, _SECONDS)
        if kills_copier:
            killed = copier(begun)
            assert killed is not None
            self.brokers[killed].kill()
            await asyncio.to_thread(self.brokers[killed].start)
        done = f"The metadata of the cluster is in {in_text}"
        await until(lambda: all(done in text[before[key] :] for key, text in self.log().items()), _SECONDS)
        await until(self.is_in_sync, _SECONDS)

    def described(self) -> Mapping[str, object]:
        """Return what clients see of the configuration of topics, of ACLs and of users."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
        (configs,) = admin.describe_configs([resource]).values()
        acls = admin.describe_acls(
            AclBindingFilter(
                ResourceType.ANY,
                None,  # type: ignore[arg-type]
                ResourcePatternType.ANY,
                None,  # type: ignore[arg-type]
                None,  # type: ignore[arg-type]
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
        )
        users = admin.describe_user_scram_credentials(["alice"])
        assert isinstance(users, dict)
        return {
            "configs": {name: entry.value for name, entry in configs.result(60).items()},
            "acls": sorted(map(str, acls.result(60))),
            "users": [
                (str(each.mechanism), each.iterations)
                for each in users["alice"].result(60).scram_credential_infos
            ],
        }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    cluster.zookeeper.start()
    for broker in cluster.brokers.values():
        broker.launch()
    for broker in cluster.brokers.values():
        broker.wait_ready()
    yield cluster
    with ThreadPoolExecutor() as threads:
        list(threads.map(KafkaCompatBroker.stop, cluster.brokers.values()))
    cluster.zookeeper.stop()


class Load:
    """An idempotent producer, and a program that copies its records in transactions."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.acknowledged: list[bytes] = []
        self.failed: list[str] = []
        self._ending = threading.Event()
        self._copied = threading.Event()
        self.threads = [threading.Thread(target=work) for work in (self._produce, self._copy)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def finish(self) -> None:
        self._ending.set()
        for thread in self.threads:
            thread.join(120)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "enable.idempotence": True})
        for number in itertools.count():
            if self._ending.wait(0.01):
                break
            producer.produce(TOPIC, str(number).encode(), on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(60)
        self._copied.set()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert isinstance(value, bytes)
        if error is None:
            self.acknowledged.append(value)
        else:
            self.failed.append(str(error))

    def _copy(self) -> None:
        idle = 0
        while idle < 5:
            try:
                idle = self._copy_until_error(idle)
            except KafkaException:
                continue

    def _copy_until_error(self, idle: int) -> int:
        base = {"bootstrap.servers": self._bootstrap}
        producer = Producer(base | {"transactional.id": "copier", "transaction.timeout.ms": "30000"})
        consumer = Consumer(
            base
            | {
                "group.id": "copiers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
            }
        )
        try:
            producer.init_transactions(60)
            consumer.subscribe([TOPIC])
            while idle < 5:
                messages = [each for each in consumer.consume(200, 1.0) if each.error() is None]
                if not messages:
                    idle += self._copied.is_set()
                    continue
                idle = 0
                producer.begin_transaction()
                for message in messages:
                    producer.produce(COPY, message.value())
                positions = [
                    position for position in consumer.position(consumer.assignment()) if position.offset >= 0
                ]
                producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 60)
                producer.commit_transaction(60)
            return idle
        finally:
            consumer.close()


def _read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"readers-of-{topic}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    idle = 0
    while idle < 10:
        messages = consumer.consume(1000, 1.0)
        values = [each.value() for each in messages if each.error() is None]
        found += [value for value in values if isinstance(value, bytes)]
        idle = 0 if len(found) < count and messages else idle + 1
    consumer.close()
    return found


def _committed(bootstrap: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "settled"})
    found = consumer.committed([TopicPartition(TOPIC, index) for index in range(3)], 60)
    consumer.close()
    return [item.offset for item in found]


def _set_up(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(TOPIC, 3, 3, config={"retention.ms": "1234567890"}),
        NewTopic(COPY, 3, 3),
        NewTopic("wide", 150, 3),
    ]
    for created in admin.create_topics(topics).values():
        created.result(60)
    acl = AclBinding(
        ResourceType.TOPIC,
        TOPIC,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    (bound,) = admin.create_acls([acl]).values()
    bound.result(60)
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion("alice", credential, b"secret")
    (stored,) = admin.alter_user_scram_credentials([user]).values()
    stored.result(60)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "settled"})
    consumer.commit(
        offsets=[TopicPartition(TOPIC, index, 5 + index) for index in range(3)], asynchronous=False
    )
    consumer.close()


async def test_a_cluster_moves_from_zookeeper_to_the_quorum_and_back_under_load(cluster: Cluster) -> None:
    bootstrap = cluster.bootstrap
    await until(lambda: asyncio.to_thread(cluster.is_in_sync), _SECONDS)
    await asyncio.to_thread(_set_up, bootstrap)
    before = await asyncio.to_thread(cluster.described)
    session = await ZooKeeperMetadataStore.connect(f"{cluster.zookeeper.address}/cluster")
    nodes = await nodes_of(session, _SAME)
    load = Load(bootstrap)
    load.start()
    try:
        await cluster.restart_all(zookeeper=True, quorum=True)
        await cluster.move("quorum", kills_copier=True)
        assert await asyncio.to_thread(cluster.described) == before
        await cluster.restart_all(zookeeper=False, quorum=True)
        assert await asyncio.to_thread(cluster.described) == before
        await cluster.restart_all(zookeeper=True, quorum=True)
        await cluster.move("zookeeper", kills_copier=True)
        await cluster.restart_all(zookeeper=True, quorum=False)
        assert await asyncio.to_thread(cluster.described) == before
    finally:
        await asyncio.to_thread(load.finish)
    # Since then, internal topics have been created.
    after = await nodes_of(session, _SAME)
    assert {path: after.get(path) for path in nodes} == nodes
    await session.close()
    assert not load.failed
    assert await asyncio.to_thread(_committed, bootstrap) == [5, 6, 7]
    for topic in (TOPIC, COPY):
        found = await asyncio.to_thread(_read, bootstrap, topic, len(load.acknowledged))
        assert sorted(found) == sorted(load.acknowledged)
    print(f"{len(load.acknowledged)} records acknowledged, each read once, and copied once")
