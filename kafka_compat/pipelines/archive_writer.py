"""Write a range of one Kafka partition as Parquet files, one per UTC day, on Spark's executors.

Executors need only pyarrow. Files get random names in the staging directory. The archive's log does not list
the files of failed task attempts, so these files never become visible.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_compat.pipelines.errors import RecordsLost
from kafka_compat.pipelines.offset_runs import OffsetRuns, int64_bytes, merged, runs_of

FILES_SCHEMA = (
    "name string, topic string, partition int, day string, first long, last long, "
    "runs_first binary, runs_last binary, undecoded long"
)
"""Schema of the rows that `write_range` yields, one per file. The runs are int64 arrays as bytes."""

ROW_GROUP_BYTES = 32 << 20
BUFFER_BYTES = 96 << 20
OPEN_FILES_MAX = 200


@dataclass
class _DayFile:
    """An open file, and the rows buffered for its next row group."""

    path: str
    day: str
    rows: list[Any] = field(default_factory=list)
    size_bytes: int = 0
    runs: list[OffsetRuns] = field(default_factory=list)
    undecoded: int = 0
    writer: Any = None


def write_range(
    batches: Iterator[Any], directory: str, add_columns: Callable[[str, Any], Any] | None = None
) -> Iterator[Any]:
    """Write record batches from one Kafka partition, in offset order, to one Parquet file per UTC day.
    `add_columns(topic, batch)` adds decoded values.

    Yields at most one record batch of FILES_SCHEMA. A day that recurs after many others may get two files.
    """
    os.makedirs(directory, exist_ok=True)
    owner: tuple[str, int] | None = None
    open_files: dict[int, _DayFile] = {}
    done: list[_DayFile] = []
    for batch in batches:
        if batch.num_rows == 0:
            continue
        owner = _owner(batch, owner)
        if add_columns is not None:
            batch = add_columns(owner[0], batch)
        for day, rows in _by_day(batch):
            if day not in open_files:
                if len(open_files) >= OPEN_FILES_MAX:
                    done.append(_finish(open_files.pop(next(iter(open_files)))))
                open_files[day] = _DayFile(
                    os.path.join(directory, f"{uuid.uuid4().hex}.parquet"), day_name(day)
                )
            _add(open_files[day], rows)
        while sum(file.size_bytes for file in open_files.values()) > BUFFER_BYTES:
            _flush(max(open_files.values(), key=lambda file: file.size_bytes))
    done += [_finish(file) for file in open_files.values()]
    if owner is not None:
        yield _as_rows(done, *owner)


def day_name(days: int) -> str:
    """Format days since 1970 as YYYY-MM-DD. Years outside of 1 to 9999 are clamped."""
    ordinal = days + date(1970, 1, 1).toordinal()
    return date.fromordinal(min(max(ordinal, date.min.toordinal()), date.max.toordinal())).isoformat()


def _owner(batch: Any, before: tuple[str, int] | None) -> tuple[str, int]:
    """Return the rows' topic and partition. Raises RecordsLost if the rows are not all from one partition."""
    topics, partitions = pc.unique(batch.column("topic")), pc.unique(batch.column("partition"))
    owner = (topics[0].as_py(), partitions[0].as_py())
    if len(topics) != 1 or len(partitions) != 1 or before not in (None, owner):
        raise RecordsLost(f"Spark mixed records of several partitions: {topics}, {partitions}, {before}.")
    return owner


def _by_day(batch: Any) -> Iterator[tuple[int, Any]]:
    """Yield (days since 1970, rows of that day) for each day, preserving the order of rows."""
    days = pc.cast(pc.cast(batch.column("timestamp"), pa.date32()), pa.int32())
    different = pc.unique(days)
    if len(different) == 1:
        yield different[0].as_py(), batch
        return
    for day in different:
        yield day.as_py(), batch.filter(pc.equal(days, day))


def _add(file: _DayFile, rows: Any) -> None:
    runs = runs_of([rows.column("offset")])
    if file.runs and file.runs[-1].last[-1].as_py() >= runs.first[0].as_py():
        raise RecordsLost(f"Offset {runs.first[0]} follows {file.runs[-1].last[-1]}.")
    file.runs.append(runs)
    file.rows.append(rows)
    if "decode_error" in rows.schema.names:
        errors = rows.column("decode_error")
        file.undecoded += len(errors) - errors.null_count
    # Use nbytes, because it counts only the slice's share of the batch's buffers.
    file.size_bytes += rows.nbytes
    if file.size_bytes > ROW_GROUP_BYTES:
        _flush(file)


def _flush(file: _DayFile) -> None:
    table = pa.Table.from_batches(file.rows)
    if file.writer is None:
        file.writer = pq.ParquetWriter(file.path, table.schema, compression="snappy")
    file.writer.write_table(table, row_group_size=table.num_rows)
    file.rows, file.size_bytes = [], 0


def _finish(file: _DayFile) -> _DayFile:
    """Write the buffered rows, and close and sync the file, before the archive's log lists it."""
    if file.rows:
        _flush(file)
    file.writer.close()
    descriptor = os.open(file.path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return file


def _as_rows(files: list[_DayFile], topic: str, partition: int) -> Any:
    rows = []
    for file in files:
        runs = merged(file.runs)
        first, last = runs.first[0].as_py(), runs.last[-1].as_py()
        edges = {"runs_first": int64_bytes(runs.first), "runs_last": int64_bytes(runs.last)}
        name = os.path.basename(file.path)
        rows.append(
            dict(
                name=name,
                topic=topic,
                partition=partition,
                day=file.day,
                first=first,
                last=last,
                undecoded=file.undecoded,
                **edges,
            )
        )
    types = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "binary": pa.binary()}
    columns = [column.split() for column in FILES_SCHEMA.split(", ")]
    return pa.RecordBatch.from_pylist(rows, pa.schema([(name, types[kind]) for name, kind in columns]))
