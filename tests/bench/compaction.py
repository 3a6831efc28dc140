"""Compaction compared with Apache Kafka: duration of a cleaning, memory, CPU time, and latency for clients.

python -m tests.bench.compaction [--records 1000000] [--keys 100000] [--pairs 3] [--json]

Each run fills a compacted topic that is not yet eligible for cleaning, starts a producer to a different
topic, and then lowers min.cleanable.dirty.ratio. The producer's latencies before that are compared with those
until the log is clean. Both brokers store the offset up to which a log is clean in cleaner-offset-checkpoint.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import report, sides
from tests.bench.report import Pairs
from tests.bench.sides import Side
from tests.bench.workloads import PROJECT
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker

TOPIC = "compacted"
PROBE = "probe"
WARM_S = 5
BEFORE_S = 3
VALUE_BYTES = 100
CLEAN_WITHIN_S = 300
SETTINGS = {"log.cleaner.backoff.ms": "100", "auto.create.topics.enable": "false"}
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "1.0",
}
COLUMNS = {
    "clean_s": "time to clean",
    "cpu_s": "CPU time of it",
    "memory_bytes": "peak memory",
    "p50_ms": "p50 while cleaning",
    "p99_ms": "p99 while cleaning",
    "p50_ratio": "p50 while cleaning / before",
    "p99_ratio": "p99 while cleaning / before",
}


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The figures of one cleaning, and a concurrent producer's latencies in ms."""

    clean_s: float
    cpu_s: float
    memory_bytes: float
    before_ms: Sequence[float]
    during_ms: Sequence[float]

    def figures(self) -> dict[str, float]:
        found = {"clean_s": self.clean_s, "cpu_s": self.cpu_s, "memory_bytes": self.memory_bytes}
        before, during = sorted(self.before_ms), sorted(self.during_ms)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            found[f"{name}_ms"] = during[int(len(during) * share)]
            found[f"{name}_ratio"] = found[f"{name}_ms"] / before[int(len(before) * share)]
        return found


def measure(side: Side, records: int, keys: int) -> Cleaning:
    """Run one measurement on a newly started broker."""
    side.create_topic(PROBE, 1)
    _create_compacted(side)
    end = _fill(side, records, keys)
    probe = _Probe(side)
    time.sleep(WARM_S)  # the broker warms up
    warm_at = time.time()
    time.sleep(BEFORE_S)  # latency without compaction is measured
    began_at = time.time()
    memory, cpu_before_s = _Memory(side), side.cpu_seconds()
    _configure(side, {"min.cleanable.dirty.ratio": "0.01"})
    asked_at = time.time()
    wait_until(lambda: _clean_up_to(side) >= end, CLEAN_WITHIN_S, f"{side.label}: a clean log")
    clean_at = time.time()
    # A child process's CPU time is added when it exits.
    wait_until(lambda: not _children(side.servers[0].pid), CLEAN_WITHIN_S, "exit of the child process")
    cpu_s = side.cpu_seconds() - cpu_before_s
    memory.stop()
    times = probe.stop()
    return Cleaning(
        clean_at - began_at,
        cpu_s,
        memory.highest_bytes,
        [latency_ms for sent_at, latency_ms in times if warm_at <= sent_at < began_at],
        [latency_ms for sent_at, latency_ms in times if asked_at <= sent_at < clean_at],
    )


class _Probe:
    """A producer in a separate process."""

    def __init__(self, side: Side) -> None:
        arguments = ["bare-until-told", side.address, PROBE, str(500 * CLEAN_WITHIN_S), str(VALUE_BYTES)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.clients", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=PROJECT,
        )

    def stop(self) -> list[tuple[float, float]]:
        """Return for each request its time in seconds since 1970, and its latency in ms."""
        found, _ = self._process.communicate(timeout=30)
        if self._process.returncode:
            raise RuntimeError("the concurrent producer failed")
        times: list[tuple[float, float]] = json.loads(found)["times"]
        return times


class _Memory(threading.Thread):
    """Samples the memory of a broker and its child processes."""

    def __init__(self, side: Side) -> None:
        super().__init__(daemon=True)
        self.highest_bytes = 0.0
        self._pid = side.servers[0].pid
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopping.wait(0.05):
            self.highest_bytes = max(self.highest_bytes, float(_resident_bytes(self._pid)))

    def stop(self) -> None:
        self._stopping.set()
        self.join()


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _resident_bytes(pid: int) -> int:
    total = 0
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total = int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total + sum(_resident_bytes(child) for child in _children(pid))


def _create_compacted(side: Side) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": side.address, "log_level": 2})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=TOPIC_SETTINGS)])[TOPIC].result(30)


def _configure(side: Side, settings: Mapping[str, str]) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    admin = AdminClient({"bootstrap.servers": side.address, "log_level": 2})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)


def _fill(side: Side, records: int, keys: int) -> int:
    """Write the keys in turn, and a last record in a new segment. Return the base offset of this segment."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": side.address, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    )
    value = b"v" * VALUE_BYTES
    for number in range(records):
        producer.produce(TOPIC, value, b"key-%d" % (number * 7919 % keys))
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError(f"{side.label} did not acknowledge all records")
    _configure(side, {"segment.ms": "1"})
    time.sleep(0.1)  # segment.ms passes, so that the next record rolls the segment
    producer.produce(TOPIC, value, b"the last")
    if producer.flush(30):
        raise RuntimeError(f"{side.label} did not acknowledge the last record")
    _configure(side, {"segment.ms": "604800000"})
    return records


def _clean_up_to(side: Side) -> int:
    checkpoint = side.servers[0].log_dir / "cleaner-offset-checkpoint"
    try:
        lines = checkpoint.read_text().splitlines()[2:]
    except OSError:
        return -1
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{TOPIC} 0 ")), -1)


def _sides(directory: Path) -> tuple[Side, Side]:
    return (
        Side("ours", [KafkaCompatBroker(directory / "ours", SETTINGS)]),
        Side(
            "genuine",
            [GenuineKafka(directory / "genuine", SETTINGS, mode="kraft", heap="1G", quick_start=False)],
        ),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the pairs, and print their ratios."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.compaction", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    ratios, effect = Pairs(), dict[str, list[dict[str, Any]]](ours=[], genuine=[])
    for pair in range(arguments.pairs):
        found: dict[str, dict[str, float]] = {}
        with tempfile.TemporaryDirectory(prefix="kafka-compat-bench-") as directory:
            both = _sides(Path(directory))
            for side in both if pair % 2 == 0 else both[::-1]:
                sides.prewarm_memory()
                side.start()
                try:
                    found[side.label] = measure(side, arguments.records, arguments.keys).figures()
                finally:
                    side.stop()
                effect[side.label].append(found[side.label])
        ratios.add(found["ours"], found["genuine"])
    if arguments.json:
        print(json.dumps({"ratios": report.as_json({"compaction": ratios}), "legs": effect}, indent=1))
        return
    print(
        report.table({"compaction": ratios}, COLUMNS, f"{arguments.records} records, {arguments.keys} keys")
    )
    for label, legs in effect.items():
        cells = {
            title: report.cell([leg[name] for leg in legs])
            for name, title in COLUMNS.items()
            if name.endswith("_ratio")
        }
        print(f"{label}: " + ", ".join(f"{title} {text}" for title, text in cells.items()))


if __name__ == "__main__":
    main()
