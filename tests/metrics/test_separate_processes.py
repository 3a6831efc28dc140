"""Broker processes on a ZooKeeper: the metrics of each broker, and their union. A group's coordinator may
differ from the leaders of the partitions that the group reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_compat.metrics.group_lag import PATIENCE_S
from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.metrics.exporter import kafka_exporter
from tests.metrics.groups import commit, produce, transaction
from tests.metrics.http_address import url
from tests.metrics.kafka_exporter import FAMILIES, of_kafka
from tests.metrics.scraping import Scrape, get, get_json
from tests.support.process import wait_until

PARTITIONS = 6
GROUPS = 8
CODECS = ("none", "gzip", "zstd")
AGES_S = (300, 200, 100)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    overrides = {"kafka.compat.http.listener": "http://127.0.0.1:0"}
    folder = tmp_path_factory.mktemp("cluster")
    # A session timeout long enough that a broker may be paused for several seconds without losing its
    # partitions.
    with FaultCluster(folder, overrides=overrides, session_timeout_ms=30_000) as running:
        yield running
        for broker in running.brokers.values():
            assert "Traceback" not in broker.log.read_text()


def filled(cluster: FaultCluster, topic: str) -> int:
    """Write three records to each partition, in batches of all kinds. Return the current time in ms, to which
    their ages are relative.
    """
    cluster.create_topic(topic, PARTITIONS)
    now_ms = int(time.time() * 1000)
    for partition in range(PARTITIONS):
        produce(
            cluster.bootstrap_servers,
            topic,
            [now_ms - age_s * 1000 for age_s in AGES_S],
            partition=partition,
            **{"compression.type": CODECS[partition % len(CODECS)]},
        )
    return now_ms


def groups(cluster: FaultCluster, topic: str) -> dict[str, int]:
    """Commit the same offset for all partitions in each group. Map each group to its offset."""
    found = {f"{topic}-{number}": number % (len(AGES_S) + 1) for number in range(GROUPS)}
    for group, offset in found.items():
        commit(
            cluster.bootstrap_servers, group, {(topic, partition): offset for partition in range(PARTITIONS)}
        )
    return found


def knows(seen: Scrape, group: str) -> bool:
    return seen.value("kafka_consumergroup_members", consumergroup=group) is not None


def test_each_group_is_exported_by_its_coordinator(cluster: FaultCluster) -> None:
    since_ms = filled(cluster, "whole")
    committed = groups(cluster, "whole")
    begun_s = time.time()
    scrapes = [Scrape(url(cluster, broker_id)) for broker_id in BROKER_IDS]
    late_s = time.time() - since_ms / 1000
    early_s = begun_s - since_ms / 1000
    coordinators = set()
    for group, offset in committed.items():
        (seen,) = (
            each for each in scrapes if each.value("kafka_consumergroup_members", consumergroup=group) == 0
        )
        coordinators.add(scrapes.index(seen))
        lag = len(AGES_S) - offset
        of_group = {"consumergroup": group, "topic": "whole"}
        ages_s = []
        for partition in range(PARTITIONS):
            at = {**of_group, "partition": partition}
            assert seen.value("kafka_consumergroup_current_offset", **at) == offset
            assert seen.value("kafka_consumergroup_lag", **at) == lag
            age_s = seen.value("kafka_consumergroup_lag_seconds", **at)
            assert age_s is not None
            if lag:
                assert AGES_S[offset] + early_s - 0.01 <= age_s <= AGES_S[offset] + late_s + 0.01
            else:
                assert age_s == 0
            ages_s.append(age_s)
        assert seen.value("kafka_consumergroup_current_offset_sum", **of_group) == PARTITIONS * offset
        assert seen.value("kafka_consumergroup_lag_sum", **of_group) == PARTITIONS * lag
        assert seen.value("kafka_consumergroup_lag_seconds_max", consumergroup=group) == max(ages_s)
    assert len(coordinators) > 1, "all groups have the same coordinator"
    for broker_id in BROKER_IDS:
        assert get_json(url(cluster, broker_id), "/ready") == (200, {"ready": True})


def test_all_processes_together_export_the_same_values_as_kafka_exporter(
    cluster: FaultCluster, tmp_path: Path
) -> None:
    with kafka_exporter(cluster.bootstrap_servers, tmp_path / "log") as exporter:
        filled(cluster, "exported")
        groups(cluster, "exported")
        expected = of_kafka(get(exporter, "/metrics")[1].decode())
    together: dict[object, float] = {}
    for broker_id in BROKER_IDS:
        told = of_kafka(get(url(cluster, broker_id), "/metrics")[1].decode())
        for key, value in told.items():
            if key[0] in FAMILIES:
                assert together.setdefault(key, value) == value, key
    assert together == expected


def test_lag_is_correct_after_markers_and_deleted_records(cluster: FaultCluster) -> None:
    cluster.create_topic("marked", 1)
    now_ms = int(time.time() * 1000)
    address = cluster.bootstrap_servers
    transaction(address, "marked", [now_ms - 50_000] * 2, end="commit")
    transaction(address, "marked", [now_ms - 40_000], end="abort")
    wanted = {f"marked-{number}": number for number in (0, 2, 3, 4, 5)}
    for group, offset in wanted.items():
        commit(address, group, {("marked", 0): offset})

    def lags() -> dict[str, tuple[float | None, float | None, float]]:
        """Return the lag of each group in records and, when this test began, in seconds, and how long the
        scrape took, since the broker computed the age at some time within it.
        """
        found: dict[str, tuple[float | None, float | None, float]] = {}
        for broker_id in BROKER_IDS:
            began_s = time.time()
            seen = Scrape(url(cluster, broker_id))
            took_s = time.time() - began_s
            for group in wanted:
                at = {"consumergroup": group, "topic": "marked", "partition": 0}
                records = seen.value("kafka_consumergroup_lag", **at)
                if records is not None:
                    age_s = seen.value("kafka_consumergroup_lag_seconds", **at)
                    found[group] = records, age_s and age_s - (began_s - now_ms / 1000), took_s
        return found

    def expect(ages_s: list[tuple[int, float]]) -> None:
        found = lags()
        for group, (records, age_s) in zip(wanted, ages_s, strict=True):
            found_records, found_age_s, took_s = found[group]
            assert found_records == records
            assert found_age_s == pytest.approx(age_s, abs=1 + took_s if age_s else 0), group

    expect([(5, 50), (3, 40), (2, 40), (1, 0), (0, 0)])
    admin, first = AdminClient({"bootstrap.servers": address}), TopicPartition("marked", 0, 1)
    admin.delete_records([first])[first].result(30)
    produce(address, "marked", [now_ms - 30_000])
    expect([(6, 50), (4, 40), (3, 40), (2, 30), (1, 30)])


def test_the_lag_of_partitions_with_an_unresponsive_leader_is_omitted(cluster: FaultCluster) -> None:
    filled(cluster, "silent")
    committed = groups(cluster, "silent")
    leaders = {number: state.leader for number, state in cluster.states("silent").items()}
    silent = leaders[0]
    others = [broker_id for broker_id in BROKER_IDS if broker_id != silent]
    urls = [url(cluster, broker_id) for broker_id in others]
    with cluster.paused(silent):
        begun_s = time.monotonic()
        scrapes = [Scrape(each) for each in urls]
        assert time.monotonic() - begun_s < len(others) * (PATIENCE_S + 2)
    told = 0
    for seen in scrapes:
        for group, offset in committed.items():
            if not knows(seen, group):
                continue
            of_group = {"consumergroup": group, "topic": "silent"}
            for partition, leader in leaders.items():
                at = {**of_group, "partition": partition}
                assert seen.value("kafka_consumergroup_current_offset", **at) == offset
                lag = seen.value("kafka_consumergroup_lag", **at)
                assert lag == (None if leader == silent else len(AGES_S) - offset)
                told += lag is not None
            assert seen.value("kafka_consumergroup_lag_sum", **of_group) is None
            assert seen.value("kafka_consumergroup_lag_seconds_max", consumergroup=group) is None
    assert told
    cluster.wait_in_sync("silent")

    def whole() -> bool:
        seen = [Scrape(url(cluster, broker_id)) for broker_id in BROKER_IDS]
        at = [{"consumergroup": group, "topic": "silent"} for group in committed]
        return all(
            any(each.value("kafka_consumergroup_lag_sum", **of) is not None for each in seen) for of in at
        )

    wait_until(whole, 30, "metrics of all groups", 0.2)
