"""A topic that is deleted while clients read and write it, and created again with the same name."""

from __future__ import annotations

import threading

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.servers import KafkaCompatBroker

TOPIC = "short-lived"
ROUNDS = 5


def test_readers_of_a_deleted_topic_do_not_affect_other_clients(broker: KafkaCompatBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    stopping = threading.Event()
    foreign: list[bytes] = []
    readers = [threading.Thread(target=_read, args=(broker.address, stopping, foreign)) for _ in range(3)]
    for number in range(ROUNDS):
        admin.create_topics([NewTopic(TOPIC, 2, 1, config={"segment.bytes": "100000"})])[TOPIC].result(30)
        value = b"life %d " % number + b"x" * 1000
        _write(broker.address, value)
        if number == 0:
            for reader in readers:
                reader.start()
        admin.delete_topics([TOPIC])[TOPIC].result(30)
    stopping.set()
    for reader in readers:
        reader.join()
    assert not foreign, "a reader received records that were not written to the topic"
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    _write(broker.address, b"the last life", count=10)
    consumer = _consumer(broker.address)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes | None] = []
    while len(found) < 10:
        found += [message.value() for message in consumer.consume(10, 5) if message.error() is None]
    consumer.close()
    assert found == [b"the last life"] * 10
    waiting = list(broker.log_dir.glob(f"{TOPIC}-*.*-delete"))
    assert len(waiting) == 2 * ROUNDS, "the directories of deleted topics remain for file.delete.delay.ms"
    assert broker.running


def _write(address: str, value: bytes, count: int = 2000) -> None:
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": 20_000, "log_level": 0})
    for _ in range(count):
        producer.produce(TOPIC, value)
    assert producer.flush(30) == 0


def _consumer(address: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 20_000,
            "log_level": 0,
        }
    )


def _read(address: str, stopping: threading.Event, foreign: list[bytes]) -> None:
    consumer = _consumer(address)
    while not stopping.is_set():
        consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(2)])
        while not stopping.is_set():
            messages = consumer.consume(200, 0.2)
            if any(message.error() is not None for message in messages):
                break
            foreign += [
                value for message in messages if not (value := message.value() or b"").startswith(b"life ")
            ]
    consumer.close()
