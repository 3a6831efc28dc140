"""A workload for comparisons of JMX metric names, and the compared parts of a scrape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from tests.quotas.clients import alter, await_notices
from tests.support.process import wait_until

TOPIC, SMALL = "flights", "odd"
RECORDS = 300
DIALECTS = ("jmx-exporter", "confluent")
GENEROUS = {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9, "request_percentage": 1e4}
"""Quotas that are never reached."""


@contextmanager
def work(address: str) -> Iterator[None]:
    """Produce and consume records as clients with quotas: also in a transaction, with a too large record, and
    with a group that has a member.
    """
    alter(address, ("", None), **GENEROUS)
    await_notices(address)
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(TOPIC, 3, 1), NewTopic(SMALL, 1, 1)]).values():
        future.result(60)
    producer = Producer({"bootstrap.servers": address})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"v" * 100, str(number).encode())
    assert producer.flush(60) == 0
    large = Producer({"bootstrap.servers": address, "message.max.bytes": 3_000_000, "retries": 0})
    large.produce(SMALL, b"v" * 2_000_000)
    large.flush(60)
    transactional = Producer({"bootstrap.servers": address, "transactional.id": "tx"})
    transactional.init_transactions(60)
    transactional.begin_transaction()
    transactional.produce(SMALL, b"v")
    transactional.commit_transaction(60)
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    try:
        seen = 0

        def all_read() -> bool:
            nonlocal seen
            for message in consumer.consume(RECORDS, 0.5):
                if message.error() is not None:
                    raise KafkaException(message.error())
                seen += 1
            return seen == RECORDS

        wait_until(all_read, 60, "consumption of all records", 0)
        consumer.commit(asynchronous=False)
        yield
    finally:
        consumer.close()


def kinds(text: str) -> dict[str, str]:
    """Map each Kafka metric family to its type."""
    lines = re.findall(r"^# TYPE (kafka_\S+) (\S+)$", text, re.MULTILINE)
    return dict(lines)


def label_names(text: str) -> dict[str, set[frozenset[str]]]:
    found: dict[str, set[frozenset[str]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).add(frozenset(sample.labels))
    return found
