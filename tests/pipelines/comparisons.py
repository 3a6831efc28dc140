"""Comparisons of Spark's output with the records stored by the broker."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset
from confluent_kafka import Consumer, KafkaError, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import PARTITIONS

COLUMNS = ["key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType"]


def assert_equals_log(directory: Path, kafka: Cluster, topic: str, partitions: int) -> int:
    """Compare the archive of a topic, record by record, with the topic as kafka-python reads it. Return the
    number of records.
    """
    table = dataset.dataset(directory, format="parquet", partitioning="hive").to_table(columns=COLUMNS)
    return assert_table_equals_log(table, kafka, topic, partitions)


def assert_table_equals_log(table: Any, kafka: Cluster, topic: str, partitions: int) -> int:
    """Compare an Arrow table of archived records with the topic as kafka-python reads it. Return the topic's
    number of records.
    """
    table = table.filter(dataset.field("topic") == topic).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.address, auto_offset_reset="earliest", enable_auto_commit=False
    )
    everything = [KafkaPythonPartition(topic, partition) for partition in range(partitions)]
    consumer.assign(everything)
    consumer.seek_to_beginning()
    total: int = sum(consumer.end_offsets(everything).values()) - sum(
        consumer.beginning_offsets(everything).values()
    )
    log: dict[tuple[int, int], Any] = {}
    while len(log) < total:
        batch = consumer.poll(timeout_ms=30_000, max_records=10_000)
        assert batch, f"kafka-python read {len(log)} of {total} records"
        log |= {(m.partition, m.offset): m for messages in batch.values() for m in messages}
    consumer.close()
    assert table.num_rows == total
    timestamps = table.column("timestamp").cast("int64").to_pylist()
    columns = [table.column(name).to_pylist() for name in ("partition", "offset", "key", "value", "headers")]
    for timestamp, partition, offset, key, value, headers in zip(timestamps, *columns, strict=True):
        message = log[partition, offset]
        assert (key, value, timestamp) == (message.key, message.value, message.timestamp * 1000)
        assert [(header["key"], header["value"]) for header in headers or []] == list(message.headers)
    return total


def committed_records(kafka: Cluster, topic: str, partitions: int, count: int) -> list[list[Any]]:
    """Read each partition with isolation.level=read_committed to its end, and check that there are `count`
    records.
    """
    found: list[list[Any]] = [[] for _ in range(partitions)]
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    own = {"bootstrap.servers": kafka.address, "group.id": "check", "enable.auto.commit": False}
    consumer: Any = Consumer({**own, **settings, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    at_end: set[int] = set()
    deadline = time.monotonic() + 30
    while len(at_end) < partitions:
        assert time.monotonic() < deadline, f"read {sum(map(len, found))} of {count} records of {topic}"
        for message in consumer.consume(10_000, 0.2):
            deadline = time.monotonic() + 30
            if message.error() is None:
                found[message.partition()].append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                at_end.add(message.partition())
    consumer.close()
    assert sum(map(len, found)) == count
    return found


def assert_same(kafka: Cluster, original: str, copy: str, count: int) -> None:
    """Check that both topics have the same records in the same order, and no others."""
    originals = committed_records(kafka, original, PARTITIONS, count)
    for before, after in zip(originals, committed_records(kafka, copy, PARTITIONS, count), strict=True):
        for old, new in zip(before, after, strict=True):
            assert (new.key(), new.value(), new.timestamp()) == (old.key(), old.value(), old.timestamp())
            assert new.headers() == old.headers()
