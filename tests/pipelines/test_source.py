"""Spark's Kafka source, batch mode: all records, all columns, and all kinds of starting and ending
offsets.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights

ReadBatch = Callable[..., Any]


def millis(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1000)


def first_at_or_after(timestamp_ms: int) -> dict[int, int]:
    """Map each partition to the offset of its first flight at or after the timestamp, in offset order."""
    found: dict[int, int] = {}
    for i, (_, _, timestamp, _) in enumerate(flights()):
        if timestamp >= timestamp_ms:
            found.setdefault(i % PARTITIONS, i // PARTITIONS)
            if len(found) == PARTITIONS:
                break
    return found


def per_partition(frame: Any) -> dict[int, tuple[int, int, int]]:
    """Map each partition to (first offset, last offset, rows)."""
    from pyspark.sql import functions as f

    found = frame.groupBy("partition").agg(f.min("offset"), f.max("offset"), f.count("*")).collect()
    return {row[0]: (row[1], row[2], row[3]) for row in found}


def test_all_records_are_read_with_all_columns(
    flights_topic: str, kafka: Cluster, read_batch: ReadBatch
) -> None:
    table = read_batch(flights_topic).toArrow()
    assert table.num_rows == FLIGHTS
    columns = {
        name: table.column(name).to_pylist() for name in ("partition", "offset", "key", "value", "headers")
    }
    timestamps = table.column("timestamp").cast("int64").to_pylist()
    found = dict(zip(zip(columns["partition"], columns["offset"], strict=True), range(FLIGHTS), strict=True))
    assert len(found) == FLIGHTS
    for i, (key, value, timestamp, headers) in enumerate(flights()):
        row = found[i % PARTITIONS, i // PARTITIONS]
        assert (columns["key"][row], columns["value"][row]) == (key, value)
        assert timestamps[row] == timestamp * 1000
        assert [(h["key"], h["value"]) for h in columns["headers"][row]] == headers


def test_headers_keep_order_duplicates_and_nulls(kafka: Cluster, read_batch: ReadBatch) -> None:
    topic = kafka.create_topic()
    headers: list[Any] = [("b", b"1"), ("a", None), ("b", b"1"), ("b", b"2"), ("a", b""), ("é", b"\x00\xff")]
    producer = kafka.producer()
    producer.produce(topic, b"v", headers=headers)
    producer.produce(topic, None, b"only a key")
    producer.produce(topic, b"", b"")
    producer.flush(30)
    first, second, third = read_batch(topic).orderBy("offset").collect()
    assert [
        (h["key"], None if h["value"] is None else bytes(h["value"])) for h in first["headers"]
    ] == headers
    assert (first["key"], bytes(first["value"])) == (None, b"v")
    assert (bytes(second["key"]), second["value"], second["headers"]) == (b"only a key", None, None)
    assert (bytes(third["key"]), bytes(third["value"])) == (b"", b"")


@pytest.mark.parametrize("deprecated", ["false", "true"])
def test_records_are_read_between_two_timestamps(
    flights_topic: str, kafka: Cluster, read_batch: ReadBatch, deprecated: str
) -> None:
    start, end = millis(2013, 1, 20, 15), millis(2013, 10, 5, 17)
    first, stop = first_at_or_after(start), first_at_or_after(end)
    options = {"useDeprecatedOffsetFetching": deprecated}
    expected = {p: (first[p], stop[p] - 1, stop[p] - first[p]) for p in range(PARTITIONS)}
    by_number = read_batch(
        flights_topic, {"startingTimestamp": str(start), "endingTimestamp": str(end), **options}
    )
    assert per_partition(by_number) == expected
    starts, ends = (json.dumps({flights_topic: {str(p): t for p in range(PARTITIONS)}}) for t in (start, end))
    by_partition = {"startingOffsetsByTimestamp": starts, "endingOffsetsByTimestamp": ends, **options}
    assert per_partition(read_batch(flights_topic, by_partition)) == expected


def test_a_starting_timestamp_after_the_last_record_fails_or_reads_nothing(
    flights_topic: str, kafka: Cluster, read_batch: ReadBatch
) -> None:
    late = {"startingTimestamp": str(millis(2030, 1, 1))}
    with pytest.raises(Exception, match=r"(?i)no offset matched|timestamp"):
        read_batch(flights_topic, late).count()
    latest = {**late, "startingOffsetsByTimestampStrategy": "latest"}
    assert read_batch(flights_topic, latest).count() == 0


def test_records_are_read_between_two_offsets(
    flights_topic: str, kafka: Cluster, read_batch: ReadBatch
) -> None:
    starts = json.dumps({flights_topic: {"0": 5, "1": -2, "2": 70_000, "3": 80_000}})
    ends = json.dumps({flights_topic: {"0": 6, "1": 10, "2": 70_001, "3": -1}})
    chosen = read_batch(flights_topic, {"startingOffsets": starts, "endingOffsets": ends})
    last = FLIGHTS // PARTITIONS - 1
    expected = {0: (5, 5, 1), 1: (0, 9, 10), 2: (70_000, 70_000, 1), 3: (80_000, last, last - 79_999)}
    assert per_partition(chosen) == expected


def test_min_partitions_splits_one_partition_among_readers(
    flights_topic: str, kafka: Cluster, read_batch: ReadBatch
) -> None:
    split = read_batch(flights_topic, {"minPartitions": "11"})
    assert split.rdd.getNumPartitions() >= 11
    size = FLIGHTS // PARTITIONS
    assert per_partition(split) == {p: (0, size - 1, size) for p in range(PARTITIONS)}
    assert split.select("partition", "offset").distinct().count() == FLIGHTS


def test_subscribe_pattern_reads_the_matching_topics(kafka: Cluster, spark: Any) -> None:
    names = [kafka.create_topic(name) for name in ("orders.eu", "orders.us", "border.eu")]
    for name in names:
        kafka.fill(name, 1, [(b"k", name.encode(), 1_700_000_000_000, [])])
    options = {"kafka.bootstrap.servers": kafka.address, "subscribePattern": r"orders\..*"}
    frame = spark.read.format("kafka").options(**options).load()
    assert {(row["topic"], bytes(row["value"])) for row in frame.collect()} == {
        ("orders.eu", b"orders.eu"),
        ("orders.us", b"orders.us"),
    }


def test_a_missing_topic_is_not_created(kafka: Cluster, read_batch: ReadBatch) -> None:
    with pytest.raises(Exception, match=r"(?i)unknown.*topic|does not host this topic|not exist"):
        read_batch("no-such-topic").count()
    from confluent_kafka.admin import AdminClient

    assert (
        "no-such-topic"
        not in AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=30).topics
    )


def test_read_committed_reads_non_transactional_records(flights_topic: str, read_batch: ReadBatch) -> None:
    assert read_batch(flights_topic, {"kafka.isolation.level": "read_committed"}).count() == FLIGHTS
