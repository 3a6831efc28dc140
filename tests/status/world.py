"""What a cluster holds whose status is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat

RECORDS = 10
COMMITTED = 4
_NOT_READY = ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS")


def make_topic(address: str, name: str, places: list[list[int]], **settings: str) -> None:
    """With the brokers of each partition's replicas."""
    admin = AdminClient({"bootstrap.servers": address})
    new = NewTopic(name, num_partitions=len(places), replica_assignment=places, config=settings)
    for future in admin.create_topics([new]).values():
        future.result(60)


def write(address: str, topic: str, records: int = RECORDS, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for _ in range(records):
        producer.produce(topic, bytes(100), partition=partition)
    assert producer.flush(30) == 0


def commit(address: str, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """By nobody who stays: the group is empty."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    try:
        wait_until(lambda: _committed(consumer, TopicPartition(topic, partition, offset)), 60, "a commit")
    finally:
        consumer.close()


def _committed(consumer: Consumer, place: TopicPartition) -> bool:
    from confluent_kafka import KafkaException

    try:
        consumer.commit(offsets=[place], asynchronous=False)
    except KafkaException as error:
        # The coordinator of the first group of a broker may not serve yet.
        if not error.args[0].retriable() and error.args[0].name() not in _NOT_READY:
            raise
        return False
    return True


@contextmanager
def reading(address: str, group: str, topic: str) -> Iterator[None]:
    """A member that has the topic's partitions, and commits nothing by itself."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) is not None and consumer.assignment(), 60, "an assignment")
        yield
    finally:
        consumer.close()


def status(address: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and what it tells as JSON."""
    done = run_kafka_compat("status", "--bootstrap-server", address, "--json", *arguments)
    return done.returncode, json.loads(done.stdout)


def one(found: list[dict[str, Any]], key: str, value: object) -> dict[str, Any]:
    """The one element that has this value."""
    (only,) = [each for each in found if each[key] == value]
    return only
