"""Disks that become full, fail or become read-only while a broker is running under load.

strace makes the broker's system calls fail, and a preloaded library simulates a full disk, so the broker
itself is not modified. A producer with acks=all and flush.messages=1 sends throughout the test. At the end,
every acknowledged record must exist exactly once.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import batches, wire
from tests.disks.full_disk import FullDisk
from tests.disks.strace import failing
from tests.durability.load import PARTITIONS, KafkaPythonProducer, Load, check, read_everything
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

TOPIC = "ledger"
PATIENCE_S = 30
NONE, LEADER_NOT_AVAILABLE, STORAGE_ERROR = 0, 5, 56


class ObedientBroker(KafkaCompatBroker):
    """A broker that runs as root, but cannot write where file permissions forbid it."""

    launcher = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


class Disks:
    """A broker with two log directories, under load."""

    def __init__(self, directory: Path, seed: str) -> None:
        self.chance = random.Random(seed)
        self.directories = [directory / "disk-0", directory / "disk-1"]
        self.space = FullDisk(directory / "full-disk")
        self.broker = ObedientBroker(
            directory / "broker",
            {
                "log.dirs": ",".join(map(str, self.directories)),
                "log.segment.bytes": "65536",
                "log.flush.interval.messages": "1",
                "auto.create.topics.enable": "false",
            },
            environment=self.space.environment,
        )
        self.broker.start()
        self.create_topic(TOPIC, PARTITIONS)
        # Do not use librdkafka: if a partition has no leader for a while, it starts a new epoch ("message
        # sequence gap") and resends records that are already stored, also with Apache Kafka.
        self.load = Load(KafkaPythonProducer(self.broker.address, TOPIC))

    def ask(self, api_key: ApiKey, version: int, request: dict[str, Any]) -> dict[str, Any]:
        with wire.Connection(self.broker.address) as connection:
            return connection.ask(api_key, version, request)

    def create_topic(self, name: str, partitions: int) -> None:
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        answer = self.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 20_000})
        assert answer["topics"][0]["error_code"] == NONE, answer

    def produce(self, partition: int) -> int:
        """Produce a batch to the topic `probe`, whose records are not checked, and return the error code."""
        data = {"index": partition, "records": batches.batch(1)}
        topic = {"name": "probe", "partition_data": [data]}
        answer = self.ask(ApiKey.PRODUCE, 7, {"acks": -1, "timeout_ms": 5000, "topic_data": [topic]})
        code: int = answer["responses"][0]["partition_responses"][0]["error_code"]
        return code

    def probe(self, directory: Path) -> None:
        """Produce to every partition in the directory, and ignore the results."""
        for partition in self.partitions_on(directory, "probe"):
            with contextlib.suppress(wire.Closed, OSError):
                self.produce(partition)

    def partitions_on(self, directory: Path, topic: str = TOPIC) -> list[int]:
        return sorted(int(found.name.rpartition("-")[2]) for found in directory.glob(f"{topic}-*"))

    def directory_in_use(self) -> Path:
        return self.chance.choice([found for found in self.directories if self.partitions_on(found)])

    def said(self, text: str) -> Callable[[], bool]:
        """Return a function that checks whether the broker has logged `text` since this call."""
        before = self.broker.log.stat().st_size
        return lambda: text in self.broker.log.read_bytes()[before:].decode()

    def restart(self) -> None:
        self.broker.restart(kill=self.chance.random() < 0.5)
        self.load.wait_for_acknowledgement()
        for partition in self.metadata():
            assert (partition["error_code"], partition["leader_id"]) == (NONE, 1)

    def metadata(self) -> list[dict[str, Any]]:
        answer = self.ask(ApiKey.METADATA, 9, {"topics": [{"name": TOPIC}]})
        found: list[dict[str, Any]] = answer["topics"][0]["partitions"]
        return sorted(found, key=lambda partition: int(partition["partition_index"]))

    def states(self) -> list[tuple[int, int, list[int]]]:
        """Return the error code, leader and offline replicas of each partition."""
        names = ("error_code", "leader_id", "offline_replicas")
        return [tuple(partition[name] for name in names) for partition in self.metadata()]

    def directory_errors(self) -> dict[str, int]:
        answer = self.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
        return {found["log_dir"]: found["error_code"] for found in answer["results"]}

    def check_offline(self, directory: Path) -> None:
        """Check that only the partitions of `directory` are offline, with Kafka's errors."""
        (other,) = (found for found in self.directories if found != directory)
        assert self.directory_errors() == {str(directory): STORAGE_ERROR, str(other): NONE}
        lost = self.partitions_on(directory)
        expected = [
            (LEADER_NOT_AVAILABLE, -1, [1]) if number in lost else (NONE, 1, [])
            for number in range(PARTITIONS)
        ]
        # The controller elects leaders after the broker has reported the failure.
        wait_until(lambda: self.states() == expected, 10, f"only partitions {lost} are offline")
        for held, code in ((directory, STORAGE_ERROR), (other, NONE)):
            for number in self.partitions_on(held, "probe"):
                assert self.produce(number) == code


@pytest.fixture
def disks(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Disks]:
    disks = Disks(tmp_path, request.node.name)
    disks.create_topic("probe", 4)
    with disks.load:
        yield disks
    disks.broker.stop()


def full(disks: Disks) -> None:
    """Writes are rejected, no directory goes offline, and writes succeed again once space is available."""
    with disks.space.full():
        wait_until(lambda: disks.produce(0) == STORAGE_ERROR, PATIENCE_S, "a rejected append")
    disks.load.wait_for_acknowledgement()
    wait_until(lambda: disks.produce(0) == NONE, PATIENCE_S, "a successful append")
    assert set(disks.directory_errors().values()) == {NONE}


def write_fails(disks: Disks) -> None:
    _fails(disks, ["write"])


def sync_fails(disks: Disks) -> None:
    _fails(disks, ["fdatasync", "fsync"])


def _fails(disks: Disks, calls: list[str]) -> None:
    directory = disks.directory_in_use()
    offline = disks.said(f"{directory} went offline")
    while not offline():
        # The broker may roll the segment before strace is attached. In that case, repeat with the current
        # segment.
        with failing(disks.broker.pid, calls, "EIO", list(directory.glob("*/*.log"))):
            disks.probe(directory)
    disks.check_offline(directory)
    disks.restart()


def read_only(disks: Disks) -> None:
    """No files can be created in the directory, so it goes offline when the next segment is due."""
    directory = disks.directory_in_use()
    offline = disks.said(f"{directory} went offline")
    folders = [directory, *directory.glob("*/")]
    for folder in folders:
        folder.chmod(0o555)
    try:
        wait_until(offline, PATIENCE_S, f"{directory} goes offline")
        disks.check_offline(directory)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    disks.restart()


def all_fail(disks: Disks) -> None:
    """Without any directory left, the broker logs the reason and exits."""
    stops = disks.said("Stopping the broker: every log directory is offline")
    logs = [log for directory in disks.directories for log in directory.glob("*/*.log")]
    with failing(disks.broker.pid, ["write"], "EIO", logs):
        for directory in disks.directories:
            disks.probe(directory)
        wait_until(lambda: not disks.broker.running, PATIENCE_S, "exit of the broker")
    assert stops()
    assert disks.broker.process.child.returncode != 0
    disks.broker.start()
    disks.load.wait_for_acknowledgement()


FAULTS = (full, write_fails, sync_fails, read_only, all_fail)


@pytest.mark.timeout(1800)
def test_disk_faults_do_not_lose_acknowledged_records(disks: Disks) -> None:
    rounds = campaign.rounds(len(FAULTS), 30)
    for number in range(rounds):
        disks.load.wait_for_acknowledgement()
        FAULTS[number % len(FAULTS)](disks)
    disks.load.stop_sending()
    log = read_everything(disks.broker.address, TOPIC)
    findings = check(log, disks.load.acknowledged, disks.load.sent)
    print(f"{rounds} faults, {len(disks.load.acknowledged)} records acknowledged, {len(log)} stored")
    assert findings.nothing, findings


def test_a_topic_created_on_a_full_disk_appears_when_space_becomes_available(disks: Disks) -> None:
    with disks.space.full():
        wait_until(lambda: disks.produce(0) == STORAGE_ERROR, PATIENCE_S, "a rejected append")
        with wire.Connection(disks.broker.address) as connection:
            topic = {"name": "later", "num_partitions": 1, "replication_factor": 1}
            connection.send(wire.encode(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 20_000}))
    wait_until(lambda: _exists(disks, "later"), PATIENCE_S, "the topic")


def _exists(disks: Disks, topic: str) -> bool:
    answer = disks.ask(ApiKey.METADATA, 9, {"topics": [{"name": topic}]})
    return bool(answer["topics"][0]["error_code"] == NONE)
