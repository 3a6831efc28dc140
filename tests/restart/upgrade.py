"""Upgrade test: `python -m tests.restart.upgrade CHECKOUT` starts this checkout on the data of a different
checkout.

One broker of the other checkout, and then three brokers with ZooKeeper, are filled with topics, settings,
records, a transaction, committed offsets, quotas, users and ACLs. They are killed, and brokers of this
checkout start on the same data directories and the same ZooKeeper. With ZooKeeper, a rolling upgrade is also
tested. Clients must find everything unchanged. Exits with 1 and lists the differences, if there are any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.support.process import wait_until
from tests.support.servers import PROJECT, KafkaCompatBroker, ZooKeeper

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "log.segment.bytes": "20000",
}
TOPICS = {"orders": 3, "compacted": 2, "idle": 1}
RECORDS = 500
GROUP = "readers"
_QUOTA = [{"key": "producer_byte_rate", "value": 12345.0, "remove": False}]
_ANY: Any = None
_ANY_ACL = AclBindingFilter(
    ResourceType.ANY, _ANY, ResourcePatternType.ANY, _ANY, _ANY, AclOperation.ANY, AclPermissionType.ANY
)


def _set(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def fill(bootstrap: str, address: str, replicas: int) -> None:
    """Create data of every kind."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    compacted = {"cleanup.policy": "compact", "segment.ms": "60000"}
    made = admin.create_topics(
        [
            NewTopic(name, partitions, replicas, config=compacted if name == "compacted" else {})
            for name, partitions in TOPICS.items()
        ]
    )
    for future in made.values():
        future.result(30)
    setting = ConfigResource(
        ConfigResource.Type.TOPIC, "orders", incremental_configs=[_set("retention.ms", "7654321")]
    )
    of_a_broker = ConfigResource(
        ConfigResource.Type.BROKER, "1", incremental_configs=[_set("log.retention.bytes", "7654321")]
    )
    for future in admin.incremental_alter_configs([setting, of_a_broker]).values():
        future.result(30)
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([binding]).values():
        future.result(30)
    user = UserScramCredentialUpsertion(
        "alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret"
    )
    for future in admin.alter_user_scram_credentials([user]).values():
        future.result(30)
    with Connection(address, 30) as connection:
        entity = {"entity": [{"entity_type": "user", "entity_name": "alice"}], "ops": _QUOTA}
        connection.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [entity], "validate_only": False})
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        for topic in ("orders", "compacted"):
            producer.produce(topic, key=b"%d" % (number % 50), value=b"%d " % number * 20)
    assert producer.flush(60) == 0
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover"})
    transactional.init_transactions(60)
    for commits in (True, False):
        transactional.begin_transaction()
        transactional.produce("orders", key=b"t", value=b"committed" if commits else b"aborted")
        transactional.flush(30)
        if commits:
            transactional.commit_transaction(30)
        else:
            transactional.abort_transaction(30)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    consumer.close()


def seen(bootstrap: str, address: str) -> dict[str, Any]:
    """Return everything that clients can see."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found: dict[str, Any] = {}
    with Connection(address, 30) as connection:
        metadata = connection.ask(ApiKey.METADATA, 12, {"topics": None, "allow_auto_topic_creation": False})
        found["cluster"] = metadata["cluster_id"]
        for topic in metadata["topics"]:
            partitions = [
                (each["partition_index"], sorted(each["replica_nodes"]))
                for each in sorted(topic["partitions"], key=lambda each: each["partition_index"])
            ]
            found[f"topic {topic['name']}"] = (str(topic["topic_id"]), partitions)
        component = {"entity_type": "user", "match_type": 2, "match": None}
        quotas = connection.ask(
            ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [component], "strict": False}
        )
        found["quotas"] = quotas["entries"]
        users = connection.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
        found["users"] = users["results"]
    # A topic's settings include those of the broker that responds, which may be any.
    for kind, name, sources in (
        (ConfigResource.Type.TOPIC, "orders", (1,)),
        (ConfigResource.Type.BROKER, "1", (2, 3)),
    ):
        (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
        found[f"settings of {name}"] = sorted(
            (entry.name, entry.value, entry.source)
            for entry in future.result(30).values()
            if entry.source in sources
        )
    found["ACLs"] = sorted(str(acl) for acl in admin.describe_acls(_ANY_ACL).result(30))
    reading = {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    consumer = Consumer({**reading, "enable.partition.eof": True})
    found["committed"] = [
        (each.partition, each.offset)
        for each in consumer.committed([TopicPartition("orders", index) for index in range(3)], 30)
    ]
    for name, count in TOPICS.items():
        found[f"records of {name}"] = _records(consumer, name, count)
    consumer.close()
    return found


def _records(consumer: Consumer, topic: str, partitions: int) -> list[tuple[Any, ...]]:
    """Return all records. For a compacted topic, return only the last record of each key, because compaction
    may remove older ones.
    """
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found, ends = [], 0
    while ends < partitions:
        message = consumer.poll(30)
        assert message is not None, topic
        if message.error():
            ends += 1
        else:
            found.append((message.partition(), message.offset(), message.key(), message.value()))
    if topic == "compacted":
        found = list({each[2]: each for each in found}.values())
    return sorted(found)


def check_one_broker(directory: Path, before: Path) -> list[str]:
    broker = KafkaCompatBroker(directory, SETTINGS, checkout=before)
    broker.start()
    fill(broker.address, broker.address, 1)
    expected = seen(broker.address, broker.address)
    broker.kill()
    now = KafkaCompatBroker(directory, SETTINGS, port=broker.port)
    now.start()
    try:
        return list(differences(expected, seen(now.address, now.address)))
    finally:
        now.stop()


def check_three_brokers(directory: Path, before: Path, *, rolling: bool) -> list[str]:
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    settings = {
        **SETTINGS,
        "zookeeper.connect": f"{zookeeper.address}/cluster",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "min.insync.replicas": "2",
    }
    brokers = [
        KafkaCompatBroker(directory / str(number), {**settings, "broker.id": str(number)}, checkout=before)
        for number in (1, 2, 3)
    ]
    try:
        for broker in brokers:
            broker.start()
        bootstrap = ",".join(broker.address for broker in brokers)
        fill(bootstrap, _controller(brokers), 3)
        expected = seen(bootstrap, brokers[0].address)
        if not rolling:
            for broker in brokers:
                broker.kill()
        for number, broker in enumerate(brokers):
            if rolling:
                broker.stop(60)
            overrides = {**settings, "broker.id": str(number + 1)}
            now = brokers[number] = KafkaCompatBroker(broker.directory, overrides, port=broker.port)
            now.start()
            if rolling:
                _await_isr(brokers)
        _await_isr(brokers)
        found = list(differences(expected, seen(bootstrap, brokers[0].address)))
        admin = AdminClient({"bootstrap.servers": bootstrap})
        (future,) = admin.create_topics([NewTopic("afterwards", 3, 3)]).values()
        future.result(30)
        return found
    finally:
        for broker in brokers:
            if broker.running:
                broker.kill()
        zookeeper.kill()


def _controller(brokers: Sequence[KafkaCompatBroker]) -> str:
    with Connection(brokers[0].address, 30) as connection:
        metadata = connection.ask(ApiKey.METADATA, 7, {"topics": [], "allow_auto_topic_creation": False})
    controller_id: int = metadata["controller_id"]
    return brokers[controller_id - 1].address


def _await_isr(brokers: Sequence[KafkaCompatBroker]) -> None:
    """Wait until all replicas of all topics are in sync."""

    def in_sync() -> bool:
        with Connection(brokers[0].address, 30) as connection:
            request = {"topics": None, "allow_auto_topic_creation": False}
            topics = connection.ask(ApiKey.METADATA, 7, request)["topics"]
        return all(
            len(partition["isr_nodes"]) == len(partition["replica_nodes"])
            for topic in topics
            for partition in topic["partitions"]
        )

    wait_until(in_sync, 60, "all replicas are in sync")


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {str(expected.get(name))[:300]} became {str(found.get(name))[:300]}"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.restart.upgrade", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a different checkout, with its own .venv")
    before = parser.parse_args(arguments).checkout.resolve()
    assert before != PROJECT
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, found in (
            ("one broker", check_one_broker(Path(folder) / "one", before)),
            ("three brokers, all at once", check_three_brokers(Path(folder) / "3", before, rolling=False)),
            ("three brokers, one by one", check_three_brokers(Path(folder) / "roll", before, rolling=True)),
        ):
            print(f"{name}: {len(found)} differences", *found, sep="\n  ", flush=True)
            failed |= bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
