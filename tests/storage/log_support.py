"""Helpers for the log tests: a manual clock, logs in a temporary or simulated directory, and batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.directory_worker import Worker
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.filesystem import Filesystem
from kafka_compat.storage.log.log import AppendInfo, Log
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch

TOPIC_ID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
START_MS = 1_700_000_000_000


class Clock:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    monotonic_ms = now_ms


class Harness:
    """LogDirs over one or more directories; they can be reopened any number of times."""

    def __init__(
        self, *directories: Path | str, config: LogConfig | None = None, filesystem: Filesystem | None = None
    ) -> None:
        self.directories = [str(directory) for directory in directories]
        self.config = config or LogConfig()
        self.filesystem = filesystem
        self.clock = Clock()
        self.failed: list[str] = []
        self.new_worker: Callable[[str], Worker] | None = None
        self.dirs = self.reopen()

    def reopen(self, *, broker_id: int = 1) -> LogDirs:
        """Load new LogDirs from the same directories."""
        self.dirs = LogDirs(
            self.directories,
            broker_id=broker_id,
            cluster_id="test",
            clock=self.clock,
            config_for=lambda _: self.config,
            filesystem=self.filesystem,
            on_failure=lambda path, lost: self.failed.append(path),
            new_worker=self.new_worker,
        )
        self.report = self.dirs.load()
        return self.dirs

    def crash(self) -> None:
        """Drop the open logs without closing them, as kill -9 does, and recover."""
        self.dirs.unlock()
        self.reopen()

    def log(self, topic: str = "t", partition: int = 0) -> Log:
        """Return the log, creating it if it is missing."""
        return self.dirs.create(topic, partition, TOPIC_ID)


def batch(
    count: int = 1,
    *,
    timestamps: Sequence[int] | None = None,
    size_bytes: int = 10,
    producer_id: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    compression: CompressionType = CompressionType.NONE,
) -> memoryview:
    """Return a producer's batch of `count` records in a new buffer."""
    records = [
        Record(timestamp=timestamp, value=b"v" * size_bytes) for timestamp in timestamps or [START_MS] * count
    ]
    return memoryview(
        bytearray(
            build_batch(
                records,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=sequence,
                transactional=transactional,
                compression=compression,
            )
        )
    )


def append(log: Log, data: memoryview, *, leader_epoch: int = 0, now_ms: int = START_MS) -> AppendInfo:
    return log.append_as_leader(data, leader_epoch=leader_epoch, now_ms=now_ms)


def offsets(
    log: Log,
    offset: int,
    max_bytes: int = 1 << 20,
    upper_bound: int | None = None,
    *,
    min_one_batch: bool = True,
) -> list[int]:
    """Return the base offsets of the batches in one read."""
    part = log.read(offset, max_bytes, upper_bound=upper_bound, min_one_batch=min_one_batch)
    if part is None:
        return []
    data = part.read()
    assert len(data) == part.size_bytes
    found, position = [], 0
    while position < len(data):
        header = read_header(data, position)
        found.append(header.base_offset)
        position += header.size_bytes
    assert position == len(data), "the read returned an incomplete batch"
    return found
