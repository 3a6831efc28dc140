"""One partition whose dependencies are controlled by the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from kafka_compat.clock import SystemClock
from kafka_compat.errors import ErrorCode
from kafka_compat.replication.flusher import Callback
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.records import Record, build_batch


class HeldFlusher:
    """A flusher that flushes when the test calls `finish`."""

    def __init__(self) -> None:
        self.asked: list[tuple[Log, Callback]] = []

    def request(self, target: Log, callback: Callback) -> None:
        self.asked.append((target, callback))

    def finish(self, error: Exception | None = None) -> None:
        asked, self.asked = self.asked, []
        for target, callback in asked:
            if error is None:
                target.flush()
            callback(error)


class Room:
    """One partition and its test doubles."""

    def __init__(self, directory: Path, config: LogConfig) -> None:
        self.log_dirs = LogDirs(
            [str(directory)], broker_id=1, cluster_id="c", clock=SystemClock(), config_for=lambda _: config
        )
        self.log_dirs.load()
        self.flusher = HeldFlusher()
        self.soon: list[Callable[[], None]] = []
        self.heard: list[int] = []
        self.answers: list[tuple[int, ErrorCode]] = []
        log = self.log_dirs.create("t", 0, uuid4())
        self.partition = Partition(
            log,
            1,
            self.flusher,
            self.soon.append,
            monotonic_ms=SystemClock().monotonic_ms,
        )
        self.partition.become_leader(0, (1,))
        self.partition.listeners.add(self)

    def partition_changed(self, partition: Partition) -> None:
        self.heard.append(partition.high_watermark)

    def append(self, count: int = 1) -> int:
        batch = build_batch([Record(timestamp=1, value=b"v") for _ in range(count)])
        return self.partition.append(memoryview(bytearray(batch)), 1).last_offset + 1

    def wait(self, offset: int) -> None:
        self.partition.when_committed(offset, lambda code: self.answers.append((offset, code)))

    def run_soon(self) -> None:
        while self.soon:
            self.soon.pop(0)()
