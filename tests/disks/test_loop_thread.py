"""Disk I/O of a broker: the event loop never waits for a disk, and each file has only one writer thread."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import wire
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

SYNCS = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync")
PATIENCE_S = 30
CHECKPOINTS = {
    "log.flush.offset.checkpoint.interval.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.flush.interval.messages": "1",
    "log.segment.delete.delay.ms": "0",
}


@contextlib.contextmanager
def calls_of(pid: int, output: Path) -> Iterator[list[tuple[int, str, str]]]:
    """Collect the disk system calls of a process within the block: (thread, system call, its arguments)."""
    traced = ",".join((*SYNCS, "openat"))
    command = ["strace", "-f", "-p", str(pid), "-o", str(output), "-s", "300", "-e", f"trace={traced}"]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    calls: list[tuple[int, str, str]] = []
    try:
        said = []
        for line in tracer.stderr:
            said.append(line)
            if "attached" in line:
                break
        else:
            raise AssertionError(f"strace cannot attach: {''.join(said)}")
        yield calls
    finally:
        tracer.terminate()
        tracer.communicate(timeout=20)
    for thread, call, arguments in re.findall(r"(?m)^(\d+)\s+(\w+)\((.*)$", output.read_text()):
        calls.append((int(thread), call, arguments))


def test_the_event_loop_never_syncs_and_each_file_has_one_writer(tmp_path: Path) -> None:
    """If two threads wrote the same temporary file, one of them would fail, and the broker would take a
    healthy directory offline.
    """
    broker = KafkaCompatBroker(tmp_path / "broker", CHECKPOINTS)
    broker.start()
    try:
        with (
            calls_of(broker.pid, tmp_path / "calls") as calls,
            wire.Connection(broker.address) as connection,
        ):
            for _ in range(2):
                _create_fill_cut_and_delete(broker, connection)
        syncing = [thread for thread, call, _ in calls if call in SYNCS]
        assert len(syncing) > 10
        assert broker.pid not in syncing
        writers: dict[str, set[int]] = defaultdict(set)
        for thread, call, arguments in calls:
            if call == "openat" and (found := re.search(r'"([^"]+?)(\.[0-9a-f]{32})?\.tmp"', arguments)):
                writers[found[1]].add(thread)
        for name in ("recovery-point-offset", "log-start-offset", "replication-offset"):
            assert len(writers[str(broker.log_dir / f"{name}-checkpoint")]) == 1, writers
        assert all(len(threads) == 1 for threads in writers.values()), writers
    finally:
        broker.stop()


def _create_fill_cut_and_delete(broker: KafkaCompatBroker, connection: wire.Connection) -> None:
    wanted = {"name": "t", "num_partitions": 3, "replication_factor": 1}
    answer = connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [wanted], "timeout_ms": 20_000})
    assert answer["topics"][0]["error_code"] == 0, answer
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "log_level": 0})
    for number in range(30):
        producer.produce("t", b"%d" % number, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0
    deleted = {"name": "t", "partitions": [{"partition_index": index, "offset": 5} for index in range(3)]}
    answer = connection.ask(ApiKey.DELETE_RECORDS, 1, {"topics": [deleted], "timeout_ms": 20_000})
    assert [item["error_code"] for item in answer["topics"][0]["partitions"]] == [0, 0, 0]
    folder = broker.log_dir
    wait_until(lambda: "t 0 5" in _text(folder / "log-start-offset-checkpoint"), PATIENCE_S, "checkpoint")
    wait_until(lambda: "t 0 10" in _text(folder / "replication-offset-checkpoint"), PATIENCE_S, "checkpoint")
    answer = connection.ask(ApiKey.DELETE_TOPICS, 1, {"topic_names": ["t"], "timeout_ms": 20_000})
    assert answer["responses"][0]["error_code"] == 0, answer
    assert not list(folder.glob("t-?"))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
