"""Batches of records for archive stores, without Spark, and kills at any step of their publication."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_compat.pipelines import archive_store
from kafka_compat.pipelines.archive_store import TABLE, ArchiveStore, StagedFile
from kafka_compat.pipelines.archive_table import ArchiveTable
from kafka_compat.pipelines.archive_writer import write_range
from kafka_compat.pipelines.delta_table import DeltaArchive
from kafka_compat.pipelines.iceberg_table import IcebergArchive
from kafka_compat.pipelines.offset_runs import OffsetRuns, int64_array

DAY_US = 86_400_000_000
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


class Killed(BaseException):
    """Simulates kill -9. A BaseException, so that no handler of the tested code catches it."""


def records(partition: int, offsets: list[int], days: list[int], topic: str = "t") -> pa.RecordBatch:
    rows = [
        {
            "key": str(o).encode(),
            "topic": topic,
            "partition": partition,
            "offset": o,
            "timestamp": day * DAY_US,
        }
        for o, day in zip(offsets, days, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def staged(store: ArchiveStore, batch_id: int, ranges: list[list[pa.RecordBatch]]) -> list[StagedFile]:
    """Write the staged files of a batch, as the executors do: one task for each range."""
    directory = store.staging_directory(batch_id)
    files = []
    for batches in ranges:
        for row in pa.Table.from_batches(write_range(iter(batches), str(directory))).to_pylist():
            del row["undecoded"]
            edges = (int64_array(row.pop("runs_first")), int64_array(row.pop("runs_last")))
            files.append(StagedFile(**row, runs=OffsetRuns(*edges)))
    return files


def archive_two_batches(
    directory: Path, format: str = "parquet", table: Callable[[Path], ArchiveTable] = DeltaArchive
) -> None:
    """Run a job that resumes from the state of the directory. Each run gets the same ranges, as from Spark's
    checkpoint.
    """
    store = ArchiveStore(directory, format)
    store.open(None if format == "parquet" else table(directory / TABLE))
    (directory / "_checkpoint" / "offsets").mkdir(parents=True, exist_ok=True)
    if not store.is_committed(0):
        files = staged(store, 0, [[records(0, [0, 1, 2, 3], [1, 2, 1, 2])], [records(1, [0, 1], [1, 1])]])
        store.commit(0, files, {"t": {0: 0, 1: 0}}, {"t": {0: 4, 1: 2}}, {"t": "id"})
    if not store.is_committed(1):
        files = staged(store, 1, [[records(0, [4, 6], [2, 3])]])
        store.commit(1, files, {"t": {0: 4, 1: 2}}, {"t": {0: 8, 1: 2}}, {"t": "id"})


def offsets_of(table: Any) -> Counter[tuple[str, int, int]]:
    """Count how often each (topic, partition, offset) is in an Arrow table."""
    return Counter(zip(*(table.column(c).to_pylist() for c in ("topic", "partition", "offset")), strict=True))


EXPECTED = Counter({("t", 0, o): 1 for o in (0, 1, 2, 3, 4, 6)} | {("t", 1, o): 1 for o in (0, 1)})
STEPS = (
    [(os, name) for name in ("replace", "fsync")]
    + [(shutil, "rmtree"), (Path, "mkdir"), (Path, "write_bytes"), (Path, "unlink")]
    + [(archive_store, "add_batch"), (DeltaArchive, "append"), (IcebergArchive, "append")]
)  # fmt: skip


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> list[int]:
    """Raise Killed after `step` operations on files or tables. Return a list with the number of operations so
    far.
    """
    count = [0]

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            if count[0] > step:
                raise Killed
            return original(*args, **kwargs)

        return operation

    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    return count
