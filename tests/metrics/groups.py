"""Records with given timestamps, and committed group offsets, written with librdkafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.transactions.programs import create_topic

__all__ = ["commit", "create_topic", "produce", "transaction"]


def produce(
    address: str,
    topic: str,
    times_ms: Sequence[int],
    *,
    partition: int = 0,
    keys: Sequence[str] | None = None,
    **settings: str,
) -> None:
    """Write one record for each timestamp, in order, and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": "5", **settings})
    for number, time_ms in enumerate(times_ms):
        key = keys[number] if keys is not None else None
        producer.produce(topic, b"v", key, partition, timestamp=time_ms)
    assert producer.flush(30) == 0


def transaction(address: str, topic: str, times_ms: Sequence[int], *, end: str) -> Producer:
    """Write records in a transaction. `end` is "commit", "abort" or "open"."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": f"id-{end}-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for time_ms in times_ms:
        producer.produce(topic, b"v", None, 0, timestamp=time_ms)
    assert producer.flush(30) == 0
    if end == "commit":
        producer.commit_transaction(30)
    elif end == "abort":
        producer.abort_transaction(30)
    return producer


def commit(address: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets for a group without members."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    wanted = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
    try:
        for each in consumer.commit(offsets=wanted, asynchronous=False):
            assert each.error is None, each
    finally:
        consumer.close()
