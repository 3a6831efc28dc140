"""Log directories of our broker opened by Apache Kafka 3.9.1, which serves all data, and then opened by our
broker again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME
from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.interop import dataset
from tests.interop.contents import Contents, differences, read_contents, wait_until_led
from tests.interop.kafka_directories import FEW_INTERNAL_PARTITIONS, is_cleaned
from tests.restart.client import Produced, new_producer_id, produce
from tests.support import java
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

BROKER_ID = "3"
SETTINGS = {"broker.id": BROKER_ID, "log.cleaner.backoff.ms": "200", **FEW_INTERNAL_PARTITIONS}
BATCHES_OF_IDEMPOTENT_PRODUCER = 8
TOPICS = {
    **dataset.TOPICS,
    "sequences": (1, dataset.SMALL_SEGMENTS),
    "cleaned": (1, dataset.CLEANED),
}


@dataclass
class Handover:
    """An Apache Kafka broker on a log directory that our broker wrote and served."""

    ours: KafkaCompatBroker
    contents: Contents
    genuine: GenuineKafka
    producer: tuple[int, int]
    """The id and epoch of an idempotent producer whose records are in the topic "sequences"."""
    last_offset: int
    """The offset of the producer's last batch."""


@pytest.fixture(scope="module", params=["after a clean stop", "after kill -9"])
def handover(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Handover]:
    directory = tmp_path_factory.mktemp("ours")
    killed = request.param == "after kill -9"
    ours = KafkaCompatBroker(directory, SETTINGS)
    ours.start()
    dataset.write_everything(ours.address)
    dataset.create_topics(ours.address, {name: TOPICS[name] for name in ("sequences", "cleaned")})
    dataset.write_superseded(ours.address, "cleaned")
    wait_until(lambda: is_cleaned(ours.log_dir, "cleaned"), 30, "completion of our log cleaner")
    # Disable cleaning from here on, so that both brokers have the same records.
    ours.overrides["log.cleaner.enable"] = "false"
    with Connection(ours.address) as connection:
        producer = new_producer_id(connection)
        for number in range(BATCHES_OF_IDEMPOTENT_PRODUCER):
            last = _produce(connection, producer, number * 5)
            assert last.error == ErrorCode.NONE
    # Restart the broker, so that its leader epochs differ from those of a new topic.
    ours.restart(kill=killed)
    contents = _read(ours.address)
    if killed:
        ours.kill()
    else:
        assert ours.process.stop() == 0

    root = f"/handover-{'killed' if killed else 'clean'}"
    _seed(zookeeper, root, ours.log_dir / JOURNAL_NAME)
    settings = {
        **SETTINGS,
        "zookeeper.connect": zookeeper.address + root,
        "log.dirs": str(ours.log_dir),
        "log.cleaner.enable": "false",
    }
    genuine = GenuineKafka(directory / "genuine", settings, zookeeper=zookeeper)
    genuine.start()
    yield Handover(ours, contents, genuine, producer, last.offset)
    genuine.stop()
    ours.stop()


def _produce(connection: Connection, producer: tuple[int, int], sequence: int) -> Produced:
    """Send five records of an idempotent producer, starting at this sequence number."""
    values = [b"%d" % (sequence + index) for index in range(5)]
    return produce(connection, "sequences", values, producer=(*producer, sequence))


def _read(address: str) -> Contents:
    return read_contents(address, dataset.partition_counts(TOPICS), dataset.GROUPS, dataset.TIMES)


def _seed(zookeeper: ZooKeeper, root: str, journal: Path) -> None:
    """Copy the cluster id, topics, settings and producer ids from our metadata to ZooKeeper."""
    copy = journal.with_name("copy-of-journal")
    shutil.copy(journal, copy)
    tree = EmbeddedMetadataStore(str(copy))
    copy.unlink()
    client = KazooClient(zookeeper.address)
    client.start(20)
    for path in (znodes.CLUSTER_ID, znodes.TOPICS, "/config", znodes.PRODUCER_ID_BLOCK):
        _copy_node(tree, client, root, path)
    client.stop()
    client.close()


def _copy_node(tree: EmbeddedMetadataStore, client: KazooClient, root: str, path: str) -> None:
    data, _ = tree.get(path, None)
    client.create(root + path, data or b"", makepath=True)
    for name in tree.children(path, None):
        _copy_node(tree, client, root, f"{path}/{name}")


def test_apache_kafka_serves_our_records_offsets_topic_ids_and_committed_offsets(handover: Handover) -> None:
    assert sum(map(len, handover.contents.records.values())) > 1500
    assert differences(handover.contents, _read(handover.genuine.address)) == []


def test_apache_kafka_logs_no_problems(handover: Handover) -> None:
    log = handover.genuine.log.read_text()
    unusual = [
        line for line in log.splitlines() if " ERROR " in line or "Corrupt" in line or "corrupt" in line
    ]
    assert unusual == []
    assert (handover.ours.log_dir / JOURNAL_NAME).exists()


def test_kafkas_consumer_groups_tool_shows_our_groups(handover: Handover) -> None:
    shown = java.run(
        "kafka-consumer-groups", "--bootstrap-server", handover.genuine.address, "--describe", "--all-groups"
    ).stdout
    rows = {
        tuple(line.split()[:5])
        for line in shown.splitlines()
        if line.split()[:1] in (["readers"], ["members"])
    }
    for group, offsets in handover.contents.groups.items():
        for (topic, partition), (offset, _) in offsets.items():
            end = handover.contents.ends[topic, partition][1]
            assert (group, topic, str(partition), str(offset), str(end)) in rows


def test_apache_kafka_continues_the_sequences_of_our_producers(handover: Handover) -> None:
    wait_until_led(handover.genuine.address, {"sequences": 1})
    next_sequence = BATCHES_OF_IDEMPOTENT_PRODUCER * 5
    with Connection(handover.genuine.address) as connection:
        repeated = _produce(connection, handover.producer, next_sequence - 5)
        assert repeated == (ErrorCode.NONE, handover.last_offset)
        skipped = _produce(connection, handover.producer, next_sequence + 5)
        assert skipped.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        continued = _produce(connection, handover.producer, next_sequence)
        assert continued == (ErrorCode.NONE, handover.last_offset + 5)


def test_our_broker_continues_where_apache_kafka_stopped(handover: Handover) -> None:
    places = [(topic, index) for topic, (count, _) in TOPICS.items() for index in range(count)]
    _append(handover.genuine.address, places)
    theirs = _read(handover.genuine.address)
    handover.genuine.stop()
    handover.ours.start()
    assert differences(_read(handover.ours.address), theirs) == []
    _append(handover.ours.address, places)
    after = _read(handover.ours.address)
    for place in places:
        assert after.records[place][:-5] == theirs.records[place]
        assert after.ends[place][1] == theirs.ends[place][1] + 5


def _append(address: str, places: Sequence[tuple[str, int]]) -> None:
    producer = dataset.new_producer(address, {"enable.idempotence": True})
    for topic, partition in places:
        for number in range(5):
            producer.produce(topic, b"appended %d" % number, b"key", partition)
    assert producer.flush(30) == 0
