"""Records and committed offsets of a broker, for comparison."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from kafka_compat.testing import KafkaBroker
from tests.control.clients import Serving, producer

Held = list[tuple[int, int, bytes | None, bytes | None, int]]
"""The partition, offset, key, value and timestamp of each record."""


def held(broker: Serving, topic: str, *, committed: bool = True) -> Held:
    """Return all records of a topic."""
    level = "read_committed" if committed else "read_uncommitted"
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 5,
            "isolation.level": level,
            "log_level": 0,
        }
    )
    partitions = client.list_topics(topic, 20).topics[topic].partitions
    client.assign([TopicPartition(topic, index, 0) for index in partitions])
    found, ends = [], 0
    while ends < len(partitions):
        message = client.poll(20)
        assert message is not None, "no records received"
        if message.error() is not None:
            ends += 1
            continue
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert partition is not None and offset is not None
        found.append((partition, offset, message.key(), value, message.timestamp()[1]))
    client.close()
    return sorted(found, key=lambda each: each[:2])


def fill(broker: Serving, topic: str, count: int = 300, start: int = 0) -> None:
    client = producer(broker, **{"batch.size": 5000})
    for number in range(start, start + count):
        client.produce(
            topic, b"%d" % number * 50, b"k%d" % (number % 10), timestamp=1_700_000_000_000 + number
        )
    assert client.flush(20) == 0


def commit_position(broker: KafkaBroker, group: str, topic: str, offset: int) -> None:
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    client.close()


def committed(broker: KafkaBroker, group: str, topic: str) -> int:
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    (position,) = client.committed([TopicPartition(topic, 0)], 20)
    client.close()
    return position.offset
