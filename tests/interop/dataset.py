"""A data set with every kind of content that a log directory can have, written through any broker."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.interop.contents import admin

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP = int(time.time()) * 1000 - 3_600_000
TIMES = (FIRST_TIMESTAMP - 1, FIRST_TIMESTAMP + 55_000, FIRST_TIMESTAMP + 399_500)
DELETED_BELOW = 77
SMALL_SEGMENTS = {"segment.bytes": "16384", "segment.index.bytes": "4096", "index.interval.bytes": "512"}

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "codecs": (3, {}),
    "small-segments": (1, SMALL_SEGMENTS),
    "idempotent": (2, SMALL_SEGMENTS),
    "deleted-records": (1, SMALL_SEGMENTS),
    "append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "tombstones": (1, {"cleanup.policy": "compact"}),
    "empty": (2, {}),
}
"""The partition count and settings of each topic."""

TRANSACTIONAL_TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "transactions": (2, SMALL_SEGMENTS),
    "open-transaction": (1, {}),
}

CLEANED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.bytes": "4096",
    "index.interval.bytes": "512",
}
"""Settings with which Kafka's cleaner soon leaves gaps between offsets."""

KEYS = (None, b"", b"key", bytes(range(256)))
COMPACTED_KEYS = (b"", b"key", bytes(range(256)))

GROUPS = ("readers", "members")


def partition_counts(topics: Mapping[str, tuple[int, dict[str, str]]]) -> dict[str, int]:
    return {name: count for name, (count, _) in topics.items()}


def create_topics(address: str, topics: Mapping[str, tuple[int, dict[str, str]]]) -> None:
    new = [NewTopic(name, count, 1, config=settings) for name, (count, settings) in topics.items()]
    client = admin(address)
    for future in client.create_topics(new).values():
        future.result(30)


def write_everything(address: str) -> None:
    """Create and fill `TOPICS`, and commit the offsets of `GROUPS`."""
    create_topics(address, TOPICS)
    for codec in CODECS:
        write(address, {"compression.type": codec}, "codecs", 3, 120)
    write(address, {}, "small-segments", 1, 600)
    write(address, {"enable.idempotence": True}, "idempotent", 2, 400)
    write(address, {}, "deleted-records", 1, 200)
    write(address, {}, "append-time", 1, 50)
    write(address, {"compression.type": "zstd"}, "tombstones", 1, 50, keys=COMPACTED_KEYS)
    client = admin(address)
    futures = client.delete_records([TopicPartition("deleted-records", 0, DELETED_BELOW)])
    for future in futures.values():
        future.result(30)
    _commit_for_readers(address)
    _commit_as_member(address)


def write_superseded(address: str, topic: str) -> None:
    """Write records of which the cleaner keeps few."""
    write(address, {}, topic, 1, 400, keys=COMPACTED_KEYS)


def write_transactions(address: str) -> Producer:
    """Commit, abort and leave open transactions, and return the producer of the open one."""
    create_topics(address, TRANSACTIONAL_TOPICS)
    producer = _transactional(address, "ledger")
    for number in range(12):
        producer.begin_transaction()
        for record in _records(2, 30, seed=f"transaction {number}"):
            producer.produce("transactions", **record)
        producer.flush(30)
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    opened = _transactional(address, "unfinished")
    opened.begin_transaction()
    for record in _records(1, 5, seed="before"):
        opened.produce("open-transaction", **record)
    opened.commit_transaction(30)
    opened.begin_transaction()
    for record in _records(1, 7, seed="open"):
        opened.produce("open-transaction", **record)
    assert opened.flush(30) == 0
    return opened


def _transactional(address: str, name: str) -> Producer:
    settings = {"transactional.id": name, "transaction.timeout.ms": 600_000, "linger.ms": 0}
    producer = new_producer(address, settings)
    producer.init_transactions(30)
    return producer


def new_producer(address: str, settings: Mapping[str, Any]) -> Producer:
    """Return a producer that creates many small batches."""
    return Producer(
        {
            "bootstrap.servers": address,
            "batch.num.messages": 10,
            "log_level": 0,
            "acks": "all",
            **settings,
        }
    )


def write(
    address: str,
    settings: Mapping[str, Any],
    topic: str,
    partitions: int,
    count: int,
    keys: Sequence[bytes | None] = KEYS,
    headers: bool = True,
) -> None:
    """Produce `count` records. Records for the old formats have no headers."""
    producer = new_producer(address, settings)
    for record in _records(partitions, count, seed=f"{topic} {settings}", keys=keys):
        if not headers:
            record["headers"] = []
        producer.produce(topic, on_delivery=_check_delivered, **record)
    assert producer.flush(30) == 0


def _check_delivered(error: Any, _message: Any) -> None:
    assert error is None, error


def _records(
    partitions: int, count: int, *, seed: str, keys: Sequence[bytes | None] = KEYS
) -> Iterator[dict[str, Any]]:
    """Return records with and without key, value and headers. The same seed returns the same records."""
    chance = random.Random(seed)
    for number in range(count):
        yield {
            "partition": number % partitions,
            "key": chance.choice(keys),
            "value": chance.choice([None, b"", b"text " * chance.randrange(60), chance.randbytes(200)]),
            "timestamp": FIRST_TIMESTAMP + number * 1000 + chance.randrange(2000),
            "headers": chance.choice([[], [("name", b"x")], [("a", None), ("a", b""), ("\u00fc", b"\0")]]),
        }


def _commit_for_readers(address: str) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers", "log_level": 0})
    committed = [TopicPartition("codecs", index, 11 * index, metadata=f"at {index}") for index in range(3)]
    consumer.commit(offsets=[*committed, TopicPartition("small-segments", 0, 3)], asynchronous=False)
    consumer.commit(offsets=[TopicPartition("small-segments", 0, 321)], asynchronous=False)
    consumer.close()


def _commit_as_member(address: str) -> None:
    """Join the group, read, commit and leave, like an application."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "members",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe(["idempotent", "append-time"])
    read = 0
    while read < 50:
        messages = consumer.consume(50 - read, timeout=20)
        assert messages, "the member of the group got no record for 20 s"
        read += len(messages)
    consumer.commit(asynchronous=False)
    consumer.close()
