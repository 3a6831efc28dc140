"""Transactions of Java 4.1.0 (transaction.version 2) on three brokers that are killed, paused and
partitioned: no checker finds an anomaly. Normal runs are short; `--campaign` runs 30,000 operations.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from kafka_compat.coordinator_runtime.partitioning import shard_of
from tests.history.checkers import CHECKERS, anomalies
from tests.history.model import Operation, parse
from tests.partitions.cluster import BROKER_IDS, CLIENT, PartitionedCluster, host_of
from tests.partitions.network import missing
from tests.support import campaign, java

WORKLOAD = Path(__file__).with_name("Workload.java")
TOPIC = "history"
PROCESSES = 6
SEED = 5
SETTINGS = {
    "kafka.compat.transaction.version": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "request.timeout.ms": "3000",
    "controlled.shutdown.enable": "false",
}

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)


class Faults:
    """Injects one fault at a time into a broker that the workload depends on. The cluster recovers after
    each.
    """

    def __init__(self, cluster: PartitionedCluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()

    def next(self) -> None:
        kinds: list[Callable[[int], None]] = [self.kill, self.pause, self.cut_off, self.cut_from_brokers]
        kind = kinds[sum(self.done.values()) % len(kinds)]
        victim = self._victim()
        kind(victim)
        self.done[kind.__name__.replace("_", " ")] += 1
        self._cluster.wait_for(
            next(number for number in BROKER_IDS if number != victim),
            lambda states: bool(states) and all(len(state.isr) == 3 for state in states.values()),
            "all replicas in sync after a fault",
            60,
        )

    def _victim(self) -> int:
        """Return the leader of a data partition, or the coordinator of transactions or groups."""
        states = self._cluster.states(self._random.choice(BROKER_IDS))
        process = f"process-{self._random.randrange(PROCESSES)}"
        partition = self._random.choice(
            [(TOPIC, 0), (TOPIC, 1), ("__transaction_state", shard_of(process, 3)), ("__consumer_offsets", 0)]
        )
        known = states.get(partition)
        return known.leader if known is not None and known.leader > 0 else self._random.choice(BROKER_IDS)

    def kill(self, victim: int) -> None:
        self._cluster.brokers[victim].restart(kill=True)

    def pause(self, victim: int) -> None:
        pid = self._cluster.brokers[victim].pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(4)  # the pause lasts for this time
        os.kill(pid, signal.SIGCONT)

    def cut_off(self, victim: int) -> None:
        self._cluster.network.unplug(host_of(victim))
        time.sleep(4)  # the network stays partitioned for this time
        self._cluster.network.heal()

    def cut_from_brokers(self, victim: int) -> None:
        others = [host_of(number) for number in BROKER_IDS if number != victim]
        self._cluster.network.cut(host_of(victim), others)
        time.sleep(4)  # the network stays partitioned for this time
        self._cluster.network.heal()


@contextmanager
def started_cluster(directory: Path) -> Iterator[PartitionedCluster]:
    cluster = PartitionedCluster(directory, settings=SETTINGS)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def workload(
    cluster: PartitionedCluster, keys: int, operations: int, out: IO[str], errors: IO[str]
) -> Iterator[subprocess.Popen[str]]:
    addresses = ",".join(broker.address for broker in cluster.brokers.values())
    line = java.command(
        str(WORKLOAD),
        addresses,
        TOPIC,
        str(keys),
        str(PROCESSES),
        str(operations),
        str(SEED),
        version="4.1.0",
        heap="512M",
    )
    process = subprocess.Popen(
        [*cluster.network.launcher(CLIENT), *line], stdout=out, stderr=errors, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run(directory: Path, operations: int, faults: int) -> tuple[list[Operation], Counter[str]]:
    history_file, errors_file = directory / "history.txt", directory / "errors.txt"
    keys = max(6, 3 * operations // 1024 + 6)
    with started_cluster(directory) as cluster:
        cluster.create_topic(TOPIC, {"min.insync.replicas": "2"}, keys)
        planned = Faults(cluster, SEED)
        with (
            history_file.open("w") as out,
            errors_file.open("w") as errors,
            workload(cluster, keys, operations, out, errors) as process,
        ):
            while process.poll() is None:
                told = history_file.read_bytes().count(b"\n")
                if (
                    told > (sum(planned.done.values()) + 1) * operations // (faults + 1)
                    and sum(planned.done.values()) < faults
                ):
                    planned.next()
                time.sleep(0.2)  # polling interval of the history
            assert process.returncode == 0, errors_file.read_text()[-3000:]
    return parse(history_file.read_text().splitlines()), planned.done


def test_the_history_of_transactions_has_no_anomalies(tmp_path: Path) -> None:
    operations = campaign.rounds(600, 30_000)
    faults = campaign.rounds(2, 24)
    history, done = run(tmp_path, operations, faults)
    found = anomalies(history)
    kinds = Counter(operation.type for operation in history)
    summary = f"{len(history)} operations {dict(kinds)}, faults {dict(done)}"
    assert not found, summary + "".join(f"\n{name}: {items[:3]}" for name, items in found.items())
    assert sum(done.values()) == faults
    assert len(history) >= operations
    assert kinds["ok"] > operations // 2
    print(f"{summary}: no anomalies found by {len(CHECKERS)} checkers")
