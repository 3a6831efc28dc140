"""Lag of Spark queries, as clients other than Spark see it in the consumer group."""

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_compat.pipelines import lag
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.lag import LagJob, run_lag, show_lag
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS
from tests.pipelines.job import Job, kills_of_a_campaign
from tests.support import java
from tests.support.campaign import enabled
from tests.support.ports import free_port
from tests.support.process import wait_until

PARTITIONS = 3


def committed(kafka: Cluster, group: str, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": group})
    answer = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], 30)
    consumer.close()
    return {entry.partition: entry.offset for entry in answer}


def start(spark: Any, kafka: Cluster, topic: str, checkpoint: Path, **options: str) -> Any:
    source = {"kafka.bootstrap.servers": kafka.address, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**{**source, **options}).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return writer.queryName("billing").trigger(processingTime="200 milliseconds").start()


def fill(kafka: Cluster, topic: str, count: int) -> None:
    kafka.fill(topic, PARTITIONS, [(None, b"v", 1_700_000_000_000, [])] * count)


def test_show_lag_commits_the_offsets_of_a_query(spark: Any, kafka: Cluster, tmp_path: Path) -> None:
    """After each batch, the group's committed offsets match the query's position. They stay there after the
    query stops.
    """
    topic = kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic, 3000)
    listener = show_lag(spark, kafka.address)
    query = start(spark, kafka, topic, tmp_path, maxOffsetsPerTrigger="600")
    try:
        group = "spark-billing"
        wait_until(
            lambda: committed(kafka, group, topic) == {0: 1000, 1: 1000, 2: 1000}, 60, "commit of all batches"
        )
        fill(kafka, topic, 30)
        wait_until(
            lambda: committed(kafka, group, topic) == {0: 1010, 1: 1010, 2: 1010},
            60,
            "commit of the new records",
        )
    finally:
        query.stop()
        spark.streams.removeListener(listener.as_listener())
        listener.close()
    fill(kafka, topic, 9)
    assert committed(kafka, group, topic) == {0: 1010, 1: 1010, 2: 1010}


def shown_by_kafka(kafka: Cluster, group: str) -> list[tuple[int, int, int]]:
    """Return (CURRENT-OFFSET, LOG-END-OFFSET, LAG) of each partition from Kafka's kafka-consumer-groups."""
    server = ("--bootstrap-server", kafka.address)
    done = java.run("kafka-consumer-groups", *server, "--describe", "--group", group, check=False)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(group)]
    return [(int(row[3]), int(row[4]), int(row[5])) for row in rows]


@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_kafka_consumer_groups_shows_the_lag(spark: Any, kafka: Cluster, tmp_path: Path) -> None:
    """While the query runs, its lag decreases and equals the end offset minus the position. At the end, it is
    exact to the record.
    """
    topic = kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic, 30_000)
    listener = show_lag(spark, kafka.address, group="watched")
    query = start(spark, kafka, topic, tmp_path, maxOffsetsPerTrigger="300")
    seen: list[int] = []
    try:
        while len(seen) < 2 or (seen[-1] and len(seen) < 100):
            shown = shown_by_kafka(kafka, "watched")
            assert all(lag == end - position for position, end, lag in shown)
            seen += [sum(lag for _, _, lag in shown)] if len(shown) == PARTITIONS else []
        assert 0 < seen[0] < 30_000 and seen == sorted(seen, reverse=True) and seen[-1] == 0
        fill(kafka, topic, 300)
        everything = dict.fromkeys(range(PARTITIONS), 10_100)
        wait_until(lambda: committed(kafka, "watched", topic) == everything, 60, "commit of all batches")
    finally:
        query.stop()
        spark.streams.removeListener(listener.as_listener())
        listener.close()
    fill(kafka, topic, 9)
    assert shown_by_kafka(kafka, "watched") == [(10_100, 10_103, 3)] * PARTITIONS


def test_a_lost_broker_does_not_stop_the_query(
    spark: Any, kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "ANSWER_TIMEOUT_S", 1.0)
    topic = kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic, 30)
    listener = show_lag(spark, f"127.0.0.1:{free_port()}", group="g")
    query = start(spark, kafka, topic, tmp_path)
    try:
        query.processAllAvailable()
        assert query.isActive
    finally:
        query.stop()
        spark.streams.removeListener(listener.as_listener())
        listener.close()


def test_lag_is_shown_from_the_checkpoint_of_another_process(
    spark: Any, kafka: Cluster, tmp_path: Path
) -> None:
    """kafka-compat pipeline lag, killed with kill -9 and restarted, computes the exact lag from the
    checkpoint files alone.
    """
    topic = kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic, 300)
    query = start(spark, kafka, topic, tmp_path)
    query.processAllAvailable()
    arguments = ["--bootstrap-server", kafka.address, "--checkpoint", str(tmp_path), "--group", "outside"]
    job = Job("lag", *arguments, "--continuous", "--interval-s", "0.1")
    wait_until(
        lambda: committed(kafka, "outside", topic) == {0: 100, 1: 100, 2: 100}, 60, "commit of all batches"
    )
    job.kill(whole_group=True)
    fill(kafka, topic, 3)
    query.processAllAvailable()
    query.stop()
    fill(kafka, topic, 6)
    report = json.loads(Job("lag", *arguments, "--json").finish())
    assert [
        (e["partition"], e["committed_offset"], e["end_offset"], e["lag"]) for e in report["partitions"]
    ] == [(partition, 101, 103, 2) for partition in range(PARTITIONS)]
    assert committed(kafka, "outside", topic) == {0: 101, 1: 101, 2: 101}


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_lag_is_correct_after_a_kill_and_a_rerun(spark: Any, kafka: Cluster, tmp_path: Path) -> None:
    """The job runs beside a query; the job and the broker are killed. The group's offsets never decrease, and
    reach the end.
    """
    topic = kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic, FLIGHTS)
    query = start(spark, kafka, topic, tmp_path, maxOffsetsPerTrigger="1000")
    arguments = ["--bootstrap-server", kafka.address, "--checkpoint", str(tmp_path), "--group", "chased"]
    shown = [-1001]
    kills = kills_of_a_campaign()
    wait_until(lambda: any((tmp_path / "commits").glob("[0-9]*")), 60, "the first batch")
    for kill in range(kills + 1):
        job = Job("lag", *arguments, "--continuous", "--interval-s", "0.05")
        before = shown[-1]
        wait_until(lambda: committed(kafka, "chased", topic)[0] > before, 120, "a new commit")  # noqa: B023
        if kill == kills // 2:
            kafka.server.restart(kill=True)
        threading.Event().wait(random.uniform(0, 1))
        job.kill(whole_group=True)
        shown.append(committed(kafka, "chased", topic)[0])
        assert query.isActive
    assert shown == sorted(shown)
    query.processAllAvailable()
    query.stop()
    fill(kafka, topic, 6)
    report = json.loads(Job("lag", *arguments, "--json").finish())
    assert [entry["lag"] for entry in report["partitions"]] == [2] * PARTITIONS
    ends = kafka.ends(topic)
    assert committed(kafka, "chased", topic) == {p: end - 2 for p, end in ends.items()}


def test_invalid_arguments_are_reported(kafka: Cluster, tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match="not the checkpoint"):
        run_lag(LagJob(kafka.address, tmp_path, "g"))
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"t":{"0":5}}')
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    closed = LagJob(f"127.0.0.1:{free_port()}", tmp_path, "g")
    with pytest.raises(NotStarted, match="does not respond: connection refused"):
        run_lag(closed)
