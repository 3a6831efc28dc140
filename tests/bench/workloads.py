"""The benchmark's workloads: each runs one client against one broker, and returns a Measurement."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support import java

PROJECT = Path(__file__).resolve().parent.parent.parent
_LEG_TIMEOUT_S = 180
CLUSTER_PARTITIONS = 6
"""Partitions of each topic on three brokers, so that each broker leads two."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a client run: records per second, and latencies in ms if the client reports them."""

    records: float
    throughput: float | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A client with a record size.

    `run(address, topic, records)` runs the client once. With `reads_existing`, it reads a topic that is
    filled beforehand. `first_guess` is the number of records in the calibration run, and `most` the maximum
    in any run; if both are equal, there is no calibration. `cluster`: run against three brokers, with three
    replicas. `has_floor`: the client library has a minimal broker, and each pair also runs against that
    broker (with the address `NO_BROKER`), as a lower bound for any broker.
    """

    name: str
    size_bytes: int
    run: Callable[[str, str, int], Measurement]
    first_guess: int
    most: int
    reads_existing: bool = False
    cluster: bool = False
    partitions: int = 1
    has_floor: bool = False


def java_produce(
    address: str,
    topic: str,
    records: int,
    size_bytes: int,
    per_second: int | None = None,
    settings: Path | None = None,
) -> Measurement:
    """Run Kafka 3.9.1's ProducerPerformance with default settings (acks=all, idempotent, batches of 16 KiB),
    or with the settings in a file.

    It sends as fast as possible, or at a given rate; then there is no throughput to compare.
    """
    more = ("--producer.config", str(settings)) if settings else ()
    text = _java(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(size_bytes)),
        *("--throughput", str(per_second or -1), "--producer-props", f"bootstrap.servers={address}"),
        *more,
    )
    summary = re.search(
        r"(?m)^(\d+) records sent, ([\d.]+) records/sec .*?, ([\d.]+) ms avg latency, "
        r".*?(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th",
        text,
    )
    if summary is None or int(summary.group(1)) != records:
        raise RuntimeError(f"ProducerPerformance did not send {records} records:\n{text[-2000:]}")
    rate, mean, p50, p99 = (float(summary.group(group)) for group in (2, 3, 4, 5))
    return Measurement(records, None if per_second else rate, mean, p50, p99)


def java_consume(address: str, topic: str, records: int, settings: Path | None = None) -> Measurement:
    """Run Kafka 3.9.1's ConsumerPerformance. The result is its fetch rate, without the time to join the
    group.
    """
    more = ("--consumer.config", str(settings)) if settings else ()
    text = _java(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", address, "--topic", topic, "--messages", str(records)),
        *("--timeout", "30000", "--hide-header"),
        *more,
    )
    rows = [line.split(", ") for line in text.splitlines() if line.count(", ") == 9]
    if not rows or int(rows[-1][4]) < records:
        raise RuntimeError(f"ConsumerPerformance did not read {records} records:\n{text[-2000:]}")
    return Measurement(float(rows[-1][4]), float(rows[-1][9]))


def java_latency(address: str, topic: str, records: int) -> Measurement:
    """Run Kafka 3.9.1's EndToEndLatency with acks=all. Only its mean has a better resolution than 1 ms."""
    text = _java("kafka-e2e-latency", address, topic, str(records), "all", "100")
    mean = re.search(r"Avg latency: ([\d.]+) ms", text)
    if mean is None:
        raise RuntimeError(f"EndToEndLatency printed no result:\n{text[-2000:]}")
    mean_ms = float(mean.group(1))
    return Measurement(records, 1000 / mean_ms, mean_ms)


def python_client(client: str, address: str, topic: str, records: int, size_bytes: int) -> Measurement:
    """Run a client of tests/bench/clients.py in a separate process."""
    arguments = [client, address, topic, str(records), str(size_bytes)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.clients", *arguments],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        timeout=_LEG_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{client} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    found.pop("seconds")
    return Measurement(**found)


def _java(tool: str, *arguments: str) -> str:
    line = java.command(tool, *arguments, heap="512M", jvm_options=())
    done = subprocess.run(line, capture_output=True, text=True, timeout=_LEG_TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{tool} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def _java_produce(
    name: str, size_bytes: int, first_guess: int, most: int, *, cluster: bool = False
) -> Workload:
    def run(address: str, topic: str, records: int) -> Measurement:
        return java_produce(address, topic, records, size_bytes)

    partitions = CLUSTER_PARTITIONS if cluster else 1
    return Workload(name, size_bytes, run, first_guess, most, cluster=cluster, partitions=partitions)


def _java_at_2000(address: str, topic: str, records: int) -> Measurement:
    return java_produce(address, topic, records, 100, per_second=2000)


def _python(
    name: str,
    client: str,
    size_bytes: int,
    first_guess: int,
    most: int,
    *,
    reads_existing: bool = False,
    cluster: bool = False,
    has_floor: bool = False,
) -> Workload:
    def run(address: str, topic: str, records: int) -> Measurement:
        return python_client(client, address, topic, records, size_bytes)

    partitions = CLUSTER_PARTITIONS if cluster else 1
    return Workload(name, size_bytes, run, first_guess, most, reads_existing, cluster, partitions, has_floor)


WORKLOADS = (
    _java_produce("java-produce-100", 100, 1_000_000, 6_000_000),
    _java_produce("java-produce-1k", 1000, 200_000, 1_000_000),
    Workload("java-consume-100", 100, java_consume, 2_000_000, 8_000_000, reads_existing=True),
    Workload("java-latency", 100, java_latency, 2_000, 20_000),
    _python("latency-bare", "bare-echo", 100, 2_000, 20_000),
    _python("confluent-produce-100", "confluent-produce", 100, 300_000, 3_000_000),
    _python("confluent-produce-1k", "confluent-produce", 1000, 100_000, 1_000_000),
    _python("confluent-consume-100", "confluent-consume", 100, 1_000_000, 6_000_000, reads_existing=True),
    _python("confluent-latency", "confluent-echo", 100, 1_000, 20_000),
    _python("kafka-python-produce-100", "kafka-python-produce", 100, 50_000, 500_000),
    _python("kafka-python-consume-100", "kafka-python-consume", 100, 100_000, 1_000_000, reads_existing=True),
    _python("aiokafka-produce-100", "aiokafka-produce", 100, 50_000, 500_000),
    _python("idempotent-produce-100", "confluent-idempotent", 100, 300_000, 3_000_000),
    _python("transactions-100", "confluent-transactions", 100, 50_000, 1_000_000, has_floor=True),
    _python("transactions-1k", "confluent-transactions", 1000, 50_000, 500_000, has_floor=True),
    _java_produce("replicated-java-100", 100, 500_000, 3_000_000, cluster=True),
    _java_produce("replicated-java-1k", 1000, 100_000, 500_000, cluster=True),
    _python("replicated-confluent-100", "confluent-produce", 100, 200_000, 2_000_000, cluster=True),
    Workload(
        "replicated-java-at-2000",
        100,
        _java_at_2000,
        10_000,
        10_000,
        cluster=True,
        partitions=CLUSTER_PARTITIONS,
    ),
    _python("replicated-latency", "confluent-one-by-one", 100, 1_000, 20_000, cluster=True),
    _python("replicated-latency-bare", "bare-at-500", 100, 2_000, 2_000, cluster=True),
)


TLS_NAMES = (
    "tls-java-produce-1k",
    "tls-java-consume-1k",
    "tls-confluent-produce-1k",
    "tls-confluent-consume-1k",
)


def tls_workloads(directory: Path, authority: Path) -> list[Workload]:
    """Workloads of clients that use TLS and trust this authority."""
    settings = directory / "client.properties"
    settings.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={authority}\n"
    )

    def produce(address: str, topic: str, records: int) -> Measurement:
        return java_produce(address, topic, records, 1000, settings=settings)

    def consume(address: str, topic: str, records: int) -> Measurement:
        return java_consume(address, topic, records, settings)

    def confluent(client: str) -> Callable[[str, str, int], Measurement]:
        def run(address: str, topic: str, records: int) -> Measurement:
            return python_client(client, f"{address},{authority}", topic, records, 1000)

        return run

    return [
        Workload(TLS_NAMES[0], 1000, produce, 200_000, 1_000_000),
        Workload(TLS_NAMES[1], 1000, consume, 300_000, 1_000_000, reads_existing=True),
        Workload(TLS_NAMES[2], 1000, confluent("tls-produce"), 100_000, 1_000_000),
        Workload(TLS_NAMES[3], 1000, confluent("tls-consume"), 300_000, 1_000_000, reads_existing=True),
    ]
