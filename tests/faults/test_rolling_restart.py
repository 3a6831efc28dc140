"""Rolling restart of all brokers under load: no client sees an error."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.durability.load import read_everything
from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.faults.evidence import check, longest_gap_s
from tests.faults.groups import CommitWatch, Member, join
from tests.faults.producers import CLIENTS, Producer, now_ms
from tests.faults.quorum_cluster import cluster_of
from tests.support import campaign
from tests.support.client_security import for_java
from tests.support.kafka_jars import cache_directory
from tests.support.process import wait_until
from tests.support.secured import FORMS

campaign_only = pytest.mark.skipif(not campaign.enabled(), reason="takes a minute: with --campaign")

_TOPIC = "ledger"
_ROUNDS = campaign.rounds(1, 3)
_PARTITIONS = 6


@contextmanager
def _producing(
    cluster: FaultCluster, directory: Path, clients: Sequence[str] = CLIENTS
) -> Iterator[list[Producer]]:
    producers = [
        Producer(
            client,
            cluster.bootstrap_servers,
            _TOPIC,
            _PARTITIONS,
            pause_ms=10,
            request_timeout_ms=5000,
            directory=directory,
        )
        for client in clients
    ]
    try:
        yield producers
    finally:
        for producer in producers:
            producer.kill()


@pytest.fixture
def spark() -> Iterator[Any]:
    from kafka_compat.pipelines.environment import copy_jars, spark_release
    from kafka_compat.pipelines.session import SparkSettings, create_session

    release = spark_release()
    jars = cache_directory() / f"spark-{release.version}"
    copy_jars(jars, release)
    settings = {"spark.sql.execution.arrow.pyspark.enabled": "true"}
    session = create_session("faults", SparkSettings("local[2]", jars), settings=settings)
    yield session
    session.stop()


def _restart_all(cluster: FaultCluster, progress: list[str]) -> None:
    for broker_id in BROKER_IDS:
        began_s = time.monotonic()
        cluster.brokers[broker_id].process.stop(60)
        stopped_s = time.monotonic() - began_s
        cluster.start(broker_id)
        wait_until(lambda: cluster.registered() == set(BROKER_IDS), 30, "registration of all brokers")
        cluster.wait_in_sync(_TOPIC)
        cluster.wait_in_sync("__consumer_offsets")
        back_s = time.monotonic() - began_s
        progress.append(f"broker {broker_id}: stopped in {stopped_s:.1f} s, back in {back_s:.1f} s")


def _ends(log: dict[tuple[int, int], bytes]) -> dict[int, int]:
    return dict(Counter(partition for partition, _ in log))


@pytest.mark.parametrize("form", ["plain", "secured", "combined", "separate"])
@pytest.mark.timeout(600)
def test_producers_and_groups_survive_a_rolling_restart(tmp_path: Path, form: str) -> None:
    """The forms are a cluster with ZooKeeper, plain or secured, and one with a quorum."""
    if not campaign.enabled() and form != "secured":
        pytest.skip("only with --campaign")
    clients = CLIENTS if campaign.enabled() else ("confluent",)
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_of(form, tmp_path))
        cluster.create_topic(_TOPIC, _PARTITIONS)
        members = [join(client, cluster.bootstrap_servers, _TOPIC, tmp_path) for client in clients]
        for member in members:
            stack.callback(member.stop)
        producers = stack.enter_context(_producing(cluster, tmp_path, clients))
        for producer in producers:
            wait_until(partial(producer.acknowledged_since, 0), 60, f"records of {producer.client}", 0.1)
        for client, member in zip(clients, members, strict=True):
            wait_until(partial(_all_committed, member), 60, f"commit of {client}", 0.2)
        watch = CommitWatch(cluster.bootstrap_servers, _TOPIC, _PARTITIONS, clients)
        watch.start()
        began_ms = now_ms()
        progress: list[str] = []
        for _ in range(_ROUNDS):
            _restart_all(cluster, progress)
        ended_ms = now_ms()
        for producer in producers:
            producer.stop()
        found = {producer.client: producer.outcomes() for producer in producers}
        log = read_everything(cluster.bootstrap_servers, _TOPIC, _PARTITIONS)
        ends = _ends(log)
        for client, member in zip(clients, members, strict=True):
            wait_until(partial(_has_committed, member, ends), 60, f"{client} read and committed all", 0.2)
            wait_until(partial(_is_told, watch, client, ends), 30, f"all commits of {client}", 0.2)
        watch.stop()
    print("\n".join(progress))
    for client, (acknowledged, given_up) in found.items():
        gap_s = longest_gap_s(acknowledged, began_ms, ended_ms)
        print(
            f"{client}: {len(acknowledged)} acknowledged, {len(given_up)} given up, longest gap {gap_s:.2f} s"
        )
        assert not given_up
    findings = check(log, {client: acknowledged for client, (acknowledged, _) in found.items()})
    assert findings.nothing, findings
    print(f"{watch.looks} lookups of the groups' offsets")
    assert not watch.went_back
    for client, member in zip(clients, members, strict=True):
        assert member.errors == [], (client, member.errors)
        missing = {p: end for p, end in ends.items() if member.consumed[p] != set(range(end))}
        assert not missing, (client, missing)


def _all_committed(member: Member) -> bool:
    return len(member.committed) == _PARTITIONS


def _has_committed(member: Member, ends: dict[int, int]) -> bool:
    assert not member.errors, member.errors
    return member.committed == ends


def _is_told(watch: CommitWatch, group: str, ends: dict[int, int]) -> bool:
    return all(watch.latest.get((group, partition)) == end for partition, end in ends.items())


@campaign_only
@FORMS
@pytest.mark.timeout(600)
def test_a_spark_stream_survives_a_rolling_restart(spark: Any, tmp_path: Path, secured: bool) -> None:
    batches: dict[int, list[tuple[int, int, bytes]]] = {}

    def collect(frame: Any, batch_id: int) -> None:
        rows = frame.select("partition", "offset", "value").toArrow()
        batches[batch_id] = list(zip(*(rows.column(index).to_pylist() for index in range(3)), strict=True))

    with ExitStack() as stack:
        cluster = stack.enter_context(FaultCluster(tmp_path, secured=secured))
        cluster.create_topic(_TOPIC, _PARTITIONS)
        producers = stack.enter_context(_producing(cluster, tmp_path))
        options = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "subscribe": _TOPIC,
            "startingOffsets": "earliest",
            **{f"kafka.{name}": value for name, value in for_java().items()},
        }
        writer = spark.readStream.format("kafka").options(**options).load().writeStream.foreachBatch(collect)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        stack.callback(query.stop)
        wait_until(lambda: len(batches) > 2, 120, "the first batch of the stream", 0.2)
        progress: list[str] = []
        _restart_all(cluster, progress)
        for producer in producers:
            producer.stop()
        log = read_everything(cluster.bootstrap_servers, _TOPIC, _PARTITIONS)

        def all_read() -> bool:
            assert query.isActive, query.exception()
            return sum(map(len, list(batches.values()))) >= len(log)

        wait_until(all_read, 60, "all records read by the stream", 0.2)
        assert query.exception() is None
    print("\n".join(progress))
    rows = [row for batch in batches.values() for row in batch]
    print(f"{len(rows)} rows in {len(batches)} batches")
    assert Counter((partition, offset) for partition, offset, _ in rows) == Counter(log.keys())
    assert {(partition, offset): bytes(value) for partition, offset, value in rows} == log
    assert not any(producer.outcomes()[1] for producer in producers)
