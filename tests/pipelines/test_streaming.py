"""Spark's Kafka source and sink, streaming mode: triggers, new partitions, and a broker that is killed during
a query.
"""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS


class Rows:
    """Collects (partition, offset) of every batch by batch id, so that a batch that is run twice counts
    once.
    """

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int]]] = {}
        self.first_batch = threading.Event()

    def __call__(self, frame: Any, batch_id: int) -> None:
        rows = frame.select("partition", "offset").toArrow()
        self.batches[batch_id] = list(
            zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True)
        )
        self.first_batch.set()

    def counted(self) -> Counter[tuple[int, int]]:
        return Counter(row for rows in self.batches.values() for row in rows)


def stream(spark: Any, kafka: Cluster, rows: Rows, checkpoint: Path, **options: str) -> Any:
    """Start an AvailableNow query on the source with these options."""
    source = {"kafka.bootstrap.servers": kafka.address, "startingOffsets": "earliest", **options}
    writer = spark.readStream.format("kafka").options(**source).load().writeStream.foreachBatch(rows)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def finish(query: Any, timeout_s: float = 120) -> None:
    assert query.awaitTermination(timeout_s), f"still running after {timeout_s} s: {query.lastProgress}"


def every_flight_once() -> Counter[tuple[int, int]]:
    return Counter((i % PARTITIONS, i // PARTITIONS) for i in range(FLIGHTS))


@pytest.mark.parametrize("deprecated", ["false", "true"])
def test_available_now_reads_in_bounded_batches(
    spark: Any, kafka: Cluster, flights_topic: str, tmp_path: Path, deprecated: str
) -> None:
    rows = Rows()
    options = {"maxOffsetsPerTrigger": "100000", "useDeprecatedOffsetFetching": deprecated}
    finish(stream(spark, kafka, rows, tmp_path, subscribe=flights_topic, **options))
    assert rows.counted() == every_flight_once()
    assert len(rows.batches) == 4
    assert all(len(batch) <= 100_000 for batch in rows.batches.values())


def test_min_partitions_splits_a_stream(
    spark: Any, kafka: Cluster, flights_topic: str, tmp_path: Path
) -> None:
    rows = Rows()
    finish(stream(spark, kafka, rows, tmp_path, subscribe=flights_topic, minPartitions="9"))
    assert rows.counted() == every_flight_once()


def test_new_partitions_and_new_topics_are_read_from_their_beginning(
    spark: Any, kafka: Cluster, tmp_path: Path
) -> None:
    first = kafka.create_topic("growing-1", 1)
    kafka.fill(first, 1, [(None, b"v", 1_700_000_000_000, [])] * 10)
    rows = Rows()
    finish(stream(spark, kafka, rows, tmp_path, subscribePattern="growing-.*"))
    assert rows.counted() == Counter({(0, offset): 1 for offset in range(10)})
    kafka.add_partitions(first, 3)
    kafka.fill(first, 3, [(None, b"w", 1_700_000_000_000, [])] * 30)
    second = kafka.create_topic("growing-2", 6)
    kafka.fill(second, 6, [(None, b"x", 1_700_000_000_000, [])] * 6)
    finish(stream(spark, kafka, rows, tmp_path, subscribePattern="growing-.*"))
    assert sum(rows.counted().values()) == 10 + 30 + 6
    grown = Counter({(0, offset): 1 for offset in range(20)}) + Counter(
        {(partition, offset): 1 for partition in (1, 2) for offset in range(10)}
    )
    assert rows.counted() == grown + Counter((partition, 0) for partition in range(6))


def test_the_sink_keeps_keys_headers_and_partitions(
    spark: Any, kafka: Cluster, flights_topic: str, tmp_path: Path
) -> None:
    copy = kafka.create_topic(partitions=PARTITIONS)
    source = {
        "kafka.bootstrap.servers": kafka.address,
        "subscribe": flights_topic,
        "includeHeaders": "true",
        "startingOffsets": "earliest",
    }
    frame = spark.readStream.format("kafka").options(**source).load().where("offset < 5000")
    columns = frame.select("key", "value", "headers", "partition")
    sink = {"kafka.bootstrap.servers": kafka.address, "topic": copy, "includeHeaders": "true"}
    writer = columns.writeStream.format("kafka").options(**sink).option("checkpointLocation", str(tmp_path))
    finish(writer.trigger(availableNow=True).start())
    for partition in range(PARTITIONS):
        original = kafka.read(flights_topic, partition, 5000)
        copied = kafka.read(copy, partition, 5000)
        assert [(m.key(), m.value(), m.headers()) for m in copied] == [
            (m.key(), m.value(), m.headers()) for m in original
        ]


def test_the_batch_sink_writes_each_row_to_its_topic(spark: Any, kafka: Cluster) -> None:
    left, right = kafka.create_topic(), kafka.create_topic()
    frame = spark.createDataFrame(
        [(left, "k", "1", None), (right, None, "2", 0), (left, None, None, 0)],
        "topic string, key string, value string, partition int",
    )
    frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", kafka.address).save()
    assert {(m.key(), m.value()) for m in kafka.read(left, 0, 2)} == {(b"k", b"1"), (None, None)}
    assert [(m.key(), m.value()) for m in kafka.read(right, 0, 1)] == [(None, b"2")]


def test_a_stream_survives_a_killed_broker(
    spark: Any, kafka: Cluster, flights_topic: str, tmp_path: Path
) -> None:
    """Kill the broker with kill -9 while one query reads and one writes. Every flight is written, and read
    once.
    """
    copy = kafka.create_topic("flights-copy", PARTITIONS)
    source = {
        "kafka.bootstrap.servers": kafka.address,
        "subscribe": flights_topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "60000",
    }
    frame = spark.readStream.format("kafka").options(**source).load()
    sink = {"kafka.bootstrap.servers": kafka.address, "topic": copy, "kafka.acks": "all"}
    writer = frame.select("key", "value", "partition").writeStream.format("kafka").options(**sink)
    copying = writer.option("checkpointLocation", str(tmp_path / "copy")).trigger(availableNow=True).start()
    rows = Rows()
    options = {"subscribe": flights_topic, "maxOffsetsPerTrigger": "40000"}
    reading = stream(spark, kafka, rows, tmp_path / "read", **options)
    assert rows.first_batch.wait(60)
    kafka.server.restart(kill=True)
    finish(reading)
    finish(copying)
    assert rows.counted() == every_flight_once()
    for partition, values in kafka.written[flights_topic].items():
        copied = [message.value() for message in kafka.read(copy, partition, len(values))]
        assert Counter(copied) == Counter(values)
