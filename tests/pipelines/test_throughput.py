"""Acceptance tests: throughput of archive and copy compared with Apache Kafka, and a large archive in limited
memory.
"""

import contextlib
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import Job, run_here
from tests.support.campaign import enabled
from tests.support.servers import GenuineKafka

PAIRS = 5
pytestmark = pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["archive", "copy"])
def test_spark_is_no_slower_than_on_apache_kafka(
    name: str,
    spark: Any,
    kafka: Cluster,
    genuine: GenuineKafka,
    connector_jars: Path,
    tmp_path: Path,
    capsys: Any,
) -> None:
    """Process all flights on both brokers in alternating order. The median of the pairs' ratios counts."""
    clusters = {"ours": kafka, "genuine": Cluster(genuine)}
    topics = {}
    for who, cluster in clusters.items():
        topics[who] = cluster.create_topic(partitions=PARTITIONS)
        cluster.fill(topics[who], PARTITIONS, flights())
    ratios = []
    for pair in range(PAIRS + 1):
        seconds = {}
        for who in sorted(clusters, reverse=pair % 2 == 0):
            cluster = clusters[who]
            arguments = ["--bootstrap-server", cluster.address, "--topic", topics[who]]
            arguments += ["--to", str(tmp_path / f"{who}-{pair}"), "--jars", str(connector_jars)]
            if name == "copy":
                arguments += ["--to-topic", cluster.create_topic(partitions=PARTITIONS)]
            started = time.perf_counter()
            assert run_here(name, *arguments)["rows"] == FLIGHTS
            seconds[who] = time.perf_counter() - started
        with capsys.disabled():
            print({who: f"{FLIGHTS / s:,.0f} records/s" for who, s in seconds.items()})
        # The first pair warms up Spark and both brokers.
        ratios += [seconds["genuine"] / seconds["ours"]] if pair else []
    ratio = statistics.median(ratios)
    with capsys.disabled():
        print(f"{name}: {ratio:.2f} of genuine Kafka's throughput")
    assert ratio >= 1.0


@pytest.mark.timeout(1800)
def test_three_million_records_are_archived_with_less_than_3_gib_of_memory(
    kafka: Cluster, connector_jars: Path, tmp_path: Path, capsys: Any
) -> None:
    """The records have 100 bytes. Memory is the sum for Spark's JVM, Python and its workers."""
    topic, count = kafka.create_topic(partitions=PARTITIONS), 3_000_000
    producer: Any = kafka.producer(**{"queue.buffering.max.messages": 1_000_000, "compression.type": "lz4"})
    for number in range(count):
        producer.produce(topic, b"%0100d" % number, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0.01)
    assert producer.flush(120) == 0
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to", str(tmp_path / "archive")]
    job = Job("archive", *arguments, "--jars", str(connector_jars), "--driver-memory", "2g", "--json")
    largest = 0
    while job.process.poll() is None:
        largest = max(largest, _resident_bytes(job.process.pid))
        time.sleep(0.5)  # interval of measuring memory
    assert json.loads(job.finish())["rows"] == count
    with capsys.disabled():
        print(f"3 million records: {largest / 2**30:.2f} GiB at most")
    assert largest < 3 * 2**30


def _resident_bytes(group: int) -> int:
    """Return the resident memory of all processes in a process group."""
    total = 0
    for folder in Path("/proc").iterdir():
        # The process may exit at any of these calls.
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(folder.name)) == group:
                total += int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total
