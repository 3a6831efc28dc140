"""A failed disk of one broker in a cluster: other brokers become leaders of its partitions, and the broker
keeps the partitions on its other disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import wire
from tests.disks.strace import failing
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

TOPIC = "replicated"
PARTITIONS = 6
PATIENCE_S = 30


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCompatBroker]:
    """Three brokers in one process, each with a log directory on each of two disks."""
    disks = ",".join(str(tmp_path / f"disk-{number}") for number in range(2))
    broker = KafkaCompatBroker(tmp_path / "cluster", {"log.dirs": disks}, arguments=["--brokers", "3"])
    del broker.overrides["broker.id"]
    broker.start()
    yield broker
    broker.stop()


def test_leadership_moves_away_from_a_failed_disk(cluster: KafkaCompatBroker, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.address, "log_level": 0})
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": cluster.address, "acks": "all", "linger.ms": 0, "log_level": 0})
    written = 0

    def write() -> None:
        nonlocal written
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, b"%d" % written, partition=partition)
        written += 1
        assert producer.flush(PATIENCE_S) == 0

    write()
    leaders = _leaders(cluster)
    disk = tmp_path / "disk-1" / "broker-2"
    lost = {int(folder.name.rpartition("-")[2]) for folder in disk.glob(f"{TOPIC}-*")}
    led = {partition for partition in lost if leaders[partition] == 2}
    assert led, "the disk must hold a partition that its broker leads"
    with failing(cluster.pid, ["write"], "EIO", list(disk.glob("*/*.log"))):
        write()
        wait_until(
            lambda: all(_leaders(cluster)[number] not in (2, -1) for number in led), PATIENCE_S, "moved"
        )
    write()
    after = _leaders(cluster)
    assert all(after[number] == leaders[number] for number in range(PARTITIONS) if number not in led)
    isrs = _isrs(cluster)
    assert all(2 not in isrs[number] for number in lost)
    assert all(2 in isrs[number] for number in range(PARTITIONS) if number not in lost)


def _leaders(cluster: KafkaCompatBroker) -> dict[int, int]:
    return {number: leader for number, (leader, _) in _partitions(cluster).items()}


def _isrs(cluster: KafkaCompatBroker) -> dict[int, list[int]]:
    return {number: isr for number, (_, isr) in _partitions(cluster).items()}


def _partitions(cluster: KafkaCompatBroker) -> dict[int, tuple[int, list[int]]]:
    with wire.Connection(cluster.address) as connection:
        answer = connection.ask(ApiKey.METADATA, 9, {"topics": [{"name": TOPIC}]})
    return {
        item["partition_index"]: (item["leader_id"], item["isr_nodes"])
        for item in answer["topics"][0]["partitions"]
    }
