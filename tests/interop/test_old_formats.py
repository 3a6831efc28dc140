"""Log directories with message formats 0 and 1, which Apache Kafka writes for old consumers: our broker opens
and serves them, and replicates them byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.interop import dataset
from tests.interop.contents import Contents, differences, read_contents, read_records, wait_until_led
from tests.interop.kafka_directories import FEW_INTERNAL_PARTITIONS
from tests.support import java
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

CODECS = ("none", "gzip", "snappy", "lz4")
FORMATS = {"format-0": "0.9.0", "format-1": "0.10.0"}
"""The message.format.version of each topic. Kafka applies it with inter.broker.protocol.version 2.8."""
PLACES = [(topic, 0) for topic in FORMATS]
COUNTS = {topic: 1 for topic in FORMATS}
GROUP = "readers"


@dataclass
class OldFolder:
    """The log directory of a stopped Apache Kafka broker, with the content that it served."""

    genuine: GenuineKafka
    settings: dict[str, str]
    contents: Contents


@pytest.fixture(scope="module")
def old_folder(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> OldFolder:
    settings = {"broker.id": "1", "zookeeper.connect": f"{zookeeper.address}/old", **FEW_INTERNAL_PARTITIONS}
    older = {"inter.broker.protocol.version": "2.8", "log.message.format.version": "0.10.0"}
    server = GenuineKafka(tmp_path_factory.mktemp("old"), {**settings, **older}, zookeeper=zookeeper)
    server.start()
    try:
        for topic, version in FORMATS.items():
            config = {**dataset.SMALL_SEGMENTS, "message.format.version": version}
            dataset.create_topics(server.address, {topic: (1, config)})
            for codec in CODECS:
                dataset.write(server.address, {"compression.type": codec}, topic, 1, 150, headers=False)
        consumer = Consumer({"bootstrap.servers": server.address, "group.id": GROUP, "log_level": 0})
        consumer.commit(offsets=[TopicPartition("format-1", 0, 77)], asynchronous=False)
        consumer.close()
        contents = _read(server.address)
    finally:
        server.stop()
    assert contents.groups[GROUP] == {("format-1", 0): (77, None)}
    for topic, magic in (("format-0", 0), ("format-1", 1)):
        assert _magics(server.log_dir, topic) == {magic}
    return OldFolder(server, settings, contents)


@pytest.fixture(scope="module")
def ours(
    old_folder: OldFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, KafkaCompatBroker]]:
    """Our broker on the Apache Kafka broker's directory, and a second broker without data."""
    first = KafkaCompatBroker(tmp_path_factory.mktemp("first"), old_folder.settings)
    first.log_dir = old_folder.genuine.log_dir
    first.overrides["log.dirs"] = str(first.log_dir)
    second = KafkaCompatBroker(tmp_path_factory.mktemp("second"), {**old_folder.settings, "broker.id": "2"})
    for broker in (first, second):
        broker.start()
    yield {1: first, 2: second}
    for broker in (first, second):
        if broker.running:
            broker.kill()


def test_old_formats_are_served_as_in_apache_kafka(
    ours: dict[int, KafkaCompatBroker], old_folder: OldFolder
) -> None:
    found = _read(ours[1].address)
    assert sum(map(len, found.records.values())) == len(FORMATS) * len(CODECS) * 150
    assert differences(found, old_folder.contents) == []


def test_a_follower_stores_the_same_bytes_and_serves_them_as_leader(
    ours: dict[int, KafkaCompatBroker], old_folder: OldFolder, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    entries = ",".join(f'{{"topic":"{topic}","partition":0,"replicas":[1,2]}}' for topic in FORMATS)
    plan.write_text(f'{{"version":1,"partitions":[{entries}]}}')
    tool = ("kafka-reassign-partitions", "--bootstrap-server", ours[1].address)
    java.run(*tool, "--reassignment-json-file", str(plan), "--execute")
    wait_until(lambda: _in_sync(ours[1].address) == {1, 2}, 30, "the follower in sync")
    for topic in FORMATS:
        assert _content(ours[2].log_dir, topic) == _content(ours[1].log_dir, topic)

    producer = dataset.new_producer(ours[1].address, {})
    for topic in FORMATS:
        producer.produce(topic, b"new", b"key", 0)
    assert producer.flush(30) == 0
    ours[1].stop()
    wait_until_led(ours[2].address, COUNTS)
    records = read_records(ours[2].address, PLACES)
    for place in PLACES:
        assert records[place][:-1] == old_folder.contents.records[place]
        assert records[place][-1].value == b"new"


def _read(address: str) -> Contents:
    """Read everything that clients can see. Timestamps are not looked up in format 0, which has none, because
    Apache Kafka rejects this.
    """
    contents = read_contents(address, COUNTS, [GROUP])
    contents.by_time = read_contents(address, {"format-1": 1}, [], dataset.TIMES).by_time
    return contents


def _in_sync(address: str) -> set[int]:
    text = java.run("kafka-topics", "--bootstrap-server", address, "--describe").stdout
    lines = [line for line in text.splitlines() if re.search(r"Topic: format-\d\tPartition: 0", line)]
    assert len(lines) == len(FORMATS), text
    found = [re.search(r"Isr: ([\d,]*)", line) for line in lines]
    return set.intersection(*({int(item) for item in match[1].split(",")} for match in found if match))


def _content(log_dir: Path, topic: str) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((log_dir / f"{topic}-0").glob("*.log")))


def _magics(log_dir: Path, topic: str) -> set[int]:
    """Return the formats in a log directory. All share the layout: offset 8, size 4, CRC 4, magic."""
    content, position, found = _content(log_dir, topic), 0, set()
    while position < len(content):
        found.add(content[position + 16])
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    return found
