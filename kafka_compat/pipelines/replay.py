"""Job `replay`: write an archive's records back to a topic, exactly once and in order.

The key, value, headers, timestamp and partition are kept. The archive's file names contain offset ranges, so
a batch opens only the required files. See exact_sink for the exactly-once delivery.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive import COLUMNS
from kafka_compat.pipelines.archive_reader import archive_format
from kafka_compat.pipelines.archive_store import ArchiveStore
from kafka_compat.pipelines.cluster import cause
from kafka_compat.pipelines.environment import require_spark
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.exact_sink import Target, write_exactly_once
from kafka_compat.pipelines.job_folder import FolderLock, JobFolder
from kafka_compat.pipelines.kafka_options import named_values
from kafka_compat.pipelines.progress import Progress, text_table
from kafka_compat.pipelines.session import LOCAL_SPARK, SparkSettings, create_session

_FILE = re.compile(r"topic_dir=([^/]+)/day_utc=(\d{4,}-\d\d-\d\d)/(\d+)-(\d+)-(\d+)\.parquet")

Ranges = dict[str, dict[str, list[int]]]
"""[first offset, end offset) for each topic and partition (a string, for JSON)."""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """Parameters of a replay: the records to select from the archive at `directory`, and their target.

    If `topics` is empty, all topics are selected. `offsets` maps partitions to offset ranges (first or None,
    end or None) of the archived topic. `since_ms` (inclusive) and `until_ms` (exclusive) limit the
    timestamps. If `to_topic` is None, topics keep their names. `state` is the job's directory (default: in
    the archive). `again` repeats a finished replay.
    """

    directory: Path
    bootstrap_servers: str
    topics: Sequence[str] = ()
    to_topic: str | None = None
    offsets: Mapping[int, tuple[int | None, int | None]] = field(default_factory=dict)
    since_ms: int | None = None
    until_ms: int | None = None
    kafka_options: Sequence[str] = ()
    create: bool = False
    dry_run: bool = False
    again: bool = False
    state: Path | None = None
    spark: SparkSettings = LOCAL_SPARK
    offsets_per_batch: int = 200_000


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """An archive file and the metadata in its name."""

    path: str
    topic: str
    day: str
    partition: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Report on a replay: rows by (topic, partition), and the number of rows that were already written."""

    job: ReplayJob
    rows: dict[tuple[str, int], int]
    written_before: int
    seconds: float
    was_complete: bool = False
    exit_code: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dict."""
        return {
            "job": "replay",
            "directory": str(self.job.directory),
            "dry_run": self.job.dry_run,
            "was_complete": self.was_complete,
            "rows": sum(self.rows.values()),
            "found": self.written_before,
            "seconds": round(self.seconds, 3),
            "partitions": [
                {"topic": topic, "to_topic": self.job.to_topic or topic, "partition": partition, "rows": rows}
                for (topic, partition), rows in sorted(self.rows.items())
            ],
        }

    def as_text(self) -> str:
        """Return a table with one line per partition, and a summary line."""
        if self.was_complete:
            return "The replay was already complete; nothing was written. Use --again to repeat it."
        lines = [
            [e["topic"], str(e["partition"]), e["to_topic"], str(e["rows"])]
            for e in self.as_json()["partitions"]
        ]
        total = sum(self.rows.values())
        end = "would be written (--dry-run)." if self.job.dry_run else f"replayed in {self.seconds:.1f} s."
        return f"{text_table(['TOPIC', 'PARTITION', 'TO-TOPIC', 'ROWS'], lines)}\n{total:,} rows {end}"


def select_rows(rows: Any, ranges: Ranges, since_ms: int | None, until_ms: int | None) -> Any:
    """Return the rows of an archive with offsets in `ranges` and timestamps in [since_ms, until_ms)."""
    from pyspark.sql import functions as f

    chosen = f.lit(False)
    for topic, partitions in ranges.items():
        for partition, (first, end) in partitions.items():
            chosen = chosen | (
                (f.col("topic") == topic)
                & (f.col("partition") == int(partition))
                & f.col("offset").between(first, end - 1)
            )
    rows = rows.where(chosen)
    if since_ms is not None:
        rows = rows.where(f.col("timestamp") >= f.timestamp_millis(f.lit(since_ms)))
    if until_ms is not None:
        rows = rows.where(f.col("timestamp") < f.timestamp_millis(f.lit(until_ms)))
    return rows


def as_records(rows: Any, to_topic: str | None) -> Any:
    """Convert archive rows to rows for exact_sink. Each record keeps its partition."""
    from pyspark.sql import functions as f

    return rows.select(
        (f.col("topic") if to_topic is None else f.lit(to_topic)).alias("to_topic"),
        f.col("partition").alias("to_partition"),
        *("key", "value", "headers", "timestamp"),
        *(f.col(name).alias(f"{name}_from") for name in ("topic", "partition", "offset")),
    )


def run_replay(job: ReplayJob) -> ReplayReport:
    """Replay the selected records of the archive. Raises PipelineError if the job fails."""
    files = _files(job)
    ranges = _ranges(job, files)
    if not ranges:
        raise NotStarted(f"{job.directory} holds no records that match.")
    require_spark()
    if not job.dry_run:
        target = Target({"bootstrap.servers": job.bootstrap_servers, **named_values(job.kafka_options)})
        _prepare(target, _wanted(job, ranges), create=job.create)
    spark = create_session("kafka-compat replay", job.spark)
    if job.dry_run:
        with Progress("replay", _size(ranges)) as progress:
            counted = _count(_read(spark, job, files, ranges))
            progress.batch(0, sum(counted.values()), 0)
        return ReplayReport(job, counted, 0, progress.seconds)
    name = hashlib.sha256(json.dumps(_settings(job), sort_keys=True).encode()).hexdigest()[:16]
    folder = JobFolder(job.state or job.directory / "_replays" / name, _settings(job))
    lock = FolderLock(folder.directory)
    lock.await_free()
    folder.check()
    lock.hold(spark._jvm)
    try:
        return _replay(job, spark, folder, target, files, ranges)
    finally:
        lock.release()


def _replay(
    job: ReplayJob, spark: Any, folder: JobFolder, target: Target, files: list[ArchiveFile], ranges: Ranges
) -> ReplayReport:
    job_id = folder.open()
    last = folder.last()
    batch_id, done, generation = (last[0] + 1, last[1]["done"], last[1]["generation"]) if last else (0, {}, 0)
    if not _left(ranges, done) and folder.begun(batch_id) is None:
        if not job.again:
            return ReplayReport(job, {}, 0, 0.0, was_complete=True)
        done, generation = {}, generation + 1
    total: dict[tuple[str, int], int] = {}
    found = 0
    with Progress("replay", _size(_left(ranges, done))) as progress:
        while _left(ranges, done) or folder.begun(batch_id) is not None:
            batch = folder.begun(batch_id)
            if batch is None:
                part = _cut(_left(ranges, done), job.offsets_per_batch)
                ends = target.ends(sorted({job.to_topic or topic for topic in part}))
                batch = folder.begin(batch_id, {"part": part, "generation": generation, "ends": ends})
            if batch["generation"] != generation:
                done, generation = {}, batch["generation"]
            rows = _read(spark, job, files, batch["part"])
            try:
                written = write_exactly_once(
                    as_records(rows, job.to_topic),
                    target,
                    f"{job_id}-{generation}",
                    batch["ends"],
                    folder.directory,
                )
                counted = _count(rows)
            except Exception as error:
                raise JobFailed(
                    cause(error), "Records written so far are kept: run the command again to continue."
                ) from error
            if written.written + written.written_before != sum(counted.values()):
                raise JobFailed(f"{counted} rows were read, but {written}. The archive may have changed.")
            done = _advanced(done, batch["part"])
            folder.commit(batch_id, {"done": done, "generation": generation})
            for key, count in counted.items():
                total[key] = total.get(key, 0) + count
            found += written.written_before
            progress.batch(batch_id, sum(counted.values()), _size(_left(ranges, done)))
            batch_id += 1
    return ReplayReport(job, total, found, progress.seconds)


def _left(ranges: Ranges, done: dict[str, dict[str, int]]) -> Ranges:
    left: Ranges = {}
    for topic, partitions in ranges.items():
        for partition, (first, end) in partitions.items():
            start = max(first, done.get(topic, {}).get(partition, first))
            if start < end:
                left.setdefault(topic, {})[partition] = [start, end]
    return left


def _advanced(done: dict[str, dict[str, int]], part: Ranges) -> dict[str, dict[str, int]]:
    ends = {topic: {p: end for p, (_, end) in partitions.items()} for topic, partitions in part.items()}
    return {topic: {**done.get(topic, {}), **ends.get(topic, {})} for topic in {**done, **ends}}


def _files(job: ReplayJob) -> list[ArchiveFile]:
    format = archive_format(job.directory)
    if format != "parquet":
        raise NotStarted(
            f"{job.directory} is an archive in the format {format}; replay reads Parquet archives."
        )
    ArchiveStore(job.directory).check()
    days = (_day(job.since_ms, "0001-01-01"), _day(job.until_ms, "9999-12-31"))
    files = []
    for path in job.directory.glob("topic_dir=*/day_utc=*/*.parquet"):
        match = _FILE.fullmatch(path.relative_to(job.directory).as_posix())
        if match and days[0] <= match[2] <= days[1] and (not job.topics or match[1] in job.topics):
            files.append(ArchiveFile(str(path), match[1], match[2], *(int(match[i]) for i in (3, 4, 5))))
    absent = set(job.topics) - {file.topic for file in files}
    if absent:
        raise NotStarted(f"{job.directory} holds no matching records of {', '.join(sorted(absent))}.")
    return files


def _day(timestamp_ms: int | None, default: str) -> str:
    return default if timestamp_ms is None else str(datetime.fromtimestamp(timestamp_ms / 1000, UTC).date())


def _ranges(job: ReplayJob, files: Iterable[ArchiveFile]) -> Ranges:
    """Return the selected offset ranges that the files contain. Partitions without files are omitted."""
    found: Ranges = {}
    for file in files:
        if job.offsets and file.partition not in job.offsets:
            continue
        first, end = job.offsets.get(file.partition, (None, None))
        low = max(file.first, first or 0)
        high = min(file.last + 1, end if end is not None else file.last + 1)
        if low < high:
            known = found.setdefault(file.topic, {}).setdefault(str(file.partition), [low, high])
            known[:] = [min(known[0], low), max(known[1], high)]
    return found


def _cut(ranges: Ranges, size: int) -> Ranges:
    """Return the first part of each partition's range, about `size` offsets in total."""
    each = max(1, size // sum(map(len, ranges.values())))
    return {
        topic: {partition: [first, min(first + each, end)] for partition, (first, end) in partitions.items()}
        for topic, partitions in ranges.items()
    }


def _size(ranges: Ranges) -> int:
    return sum(end - first for partitions in ranges.values() for first, end in partitions.values())


def _read(spark: Any, job: ReplayJob, files: Iterable[ArchiveFile], ranges: Ranges) -> Any:
    paths = []
    for file in files:
        first, end = ranges.get(file.topic, {}).get(str(file.partition), (0, 0))
        if file.first < end and file.last >= first:
            paths.append(file.path)
    rows = (
        spark.read.schema(archive_schema()).parquet(*paths)
        if paths
        else spark.createDataFrame([], archive_schema())
    )
    return select_rows(rows, ranges, job.since_ms, job.until_ms)


def archive_schema() -> str:
    """Return the archive's columns as a Spark DDL string."""
    headers = "array<struct<key: string, value: binary>>"
    types = ("binary", "binary", headers, "string", "int", "bigint", "timestamp", "int")
    return ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, types, strict=True))


def _count(rows: Any) -> dict[tuple[str, int], int]:
    return {
        (row["topic"], row["partition"]): row["count"]
        for row in rows.groupBy("topic", "partition").count().collect()
    }


def _prepare(target: Target, wanted: Mapping[str, int], *, create: bool) -> None:
    """Raise NotStarted unless the target has the wanted partitions. With `create`, create missing topics."""
    target.look(wanted, create=create)
    if create:
        there = target.partitions()
        for topic, count in wanted.items():
            if topic not in there:
                target.create(topic, count)
    target.require(wanted)


def _wanted(job: ReplayJob, ranges: Ranges) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for topic, partitions in ranges.items():
        name = job.to_topic or topic
        wanted[name] = max(wanted.get(name, 0), *(int(partition) + 1 for partition in partitions))
    return wanted


def _settings(job: ReplayJob) -> dict[str, Any]:
    return {
        "job": "replay",
        "streams": False,
        "archive": str(job.directory.resolve()),
        "to": job.bootstrap_servers,
        "topics": sorted(job.topics),
        "to_topic": job.to_topic,
        "offsets": {str(partition): list(pair) for partition, pair in sorted(job.offsets.items())},
        "since_ms": job.since_ms,
        "until_ms": job.until_ms,
    }
