"""Job `report`: analyze skew, hot keys, sizes, compression and pending retention in a broker's data
directory, without a running broker.

A first pass over the segments (see kafka_log) computes a line for each segment. A second pass finds the hot
keys.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.cluster import cause
from kafka_compat.pipelines.environment import require_matplotlib, require_spark
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.log_report import KeyLine, LogReport, PartitionLine
from kafka_compat.pipelines.plot_page import Origin
from kafka_compat.pipelines.progress import Progress
from kafka_compat.pipelines.report_plot import plot
from kafka_compat.pipelines.session import LOCAL_SPARK, SparkSettings, create_session

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ReportJob:
    """Parameters of a report. All `folders` must belong to one broker, because replicas on several brokers
    would be counted several times. If `topics` is empty, all except internal topics are included.

    `retention_ms` and `retention_bytes` (None: unlimited) are the topics' settings, which data directories do
    not contain. `now_ms` defaults to the time of the run. `hot_keys` is the number of listed keys per topic.
    `command` is shown on the plot.
    """

    folders: Sequence[Path]
    topics: Sequence[str] = ()
    retention_ms: int | None = 7 * DAY_MS
    retention_bytes: int | None = None
    now_ms: int | None = None
    hot_keys: int = 10
    plot: Path | None = None
    command: str = ""
    spark: SparkSettings = LOCAL_SPARK


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """Figures for a segment: its records, bytes on disk and decompressed, and largest timestamp (ms)."""

    topic: str
    partition: int
    segment: int
    rows: int
    size_bytes: int
    raw_bytes: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Value sizes of a partition in bytes (median, 99th percentile, largest), and its codecs."""

    p50: int
    p99: int
    largest: int
    codecs: tuple[str, ...]


def run_report(job: ReportJob) -> LogReport:
    """Read the data directories, and return the report. Raises PipelineError if the job fails."""
    require_spark()
    if job.plot is not None:
        require_matplotlib()
    from kafka_compat.pipelines.kafka_log import KafkaLog, segments

    try:
        files = [segment for folder in job.folders for segment in segments(folder, list(job.topics))]
    except (OSError, ValueError) as error:
        raise NotStarted(str(error), "Give a broker's log.dirs with --log-dir.") from None
    absent = set(job.topics) - {file.topic for file in files}
    if absent:
        raise NotStarted(f"Unknown topics: {', '.join(sorted(absent))}.")
    spark = create_session("kafka-compat report", job.spark, connector=False)
    spark.dataSource.register(KafkaLog)
    options = {"path": ",".join(map(str, job.folders)), "topic": ",".join(job.topics)}
    reader = spark.read.format("kafka-log").options(**options)
    with Progress("report", len(files), unit="segments to read, twice") as progress:
        try:
            rows = reader.option("payload", "none").load()
            segment_lines, sizes = _scan(rows)
            progress.batch(0, sum(line.rows for line in segment_lines), 0)
            keys = hot_keys(reader.option("payload", "keys").load(), job.hot_keys) if job.hot_keys else []
        except Exception as error:
            raise JobFailed(cause(error), "The damaged segment is listed above.") from error
    partitions = partition_lines(job, segment_lines, sizes)
    report = LogReport(partitions, keys, progress.seconds)
    if job.plot is not None:
        report = replace(report, plots=plot(job.plot, report, Origin.now(job.command, _cluster(job.folders))))
    return report


def _cluster(folders: Sequence[Path]) -> str:
    """Describe the directories' clusters and brokers, from meta.properties."""
    places = []
    for folder in folders:
        text = (folder / "meta.properties").read_bytes().decode(errors="replace")
        facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")
        cluster, broker = (
            facts.get("cluster.id", "without id"),
            facts.get("broker.id", facts.get("node.id", "?")),
        )
        places.append(f"{cluster}, broker {broker}, {folder.resolve()}")
    return "; ".join(places)


def partition_lines(
    job: ReportJob, segments: Sequence[SegmentLine], sizes: dict[tuple[str, int], Sizes]
) -> list[PartitionLine]:
    """Return a line for each partition, sorted by topic and partition."""
    now_ms = int(time.time() * 1000) if job.now_ms is None else job.now_ms
    lines = []
    for owner, size in sorted(sizes.items(), key=lambda item: item[0]):
        own = sorted((s for s in segments if (s.topic, s.partition) == owner), key=lambda s: s.segment)
        due, next_due_ms = _due(job, own, now_ms)
        future = [s for s in own if s.last_ms > now_ms + DAY_MS]
        lines.append(
            PartitionLine(
                *owner,
                sum(s.rows for s in own),
                sum(s.size_bytes for s in own),
                sum(s.raw_bytes for s in own),
                size.p50,
                size.p99,
                size.largest,
                size.codecs,
                sum(s.rows for s in due),
                sum(s.size_bytes for s in due),
                next_due_ms,
                sum(s.rows for s in future),
            )
        )
    return lines


def _due(
    job: ReportJob, segments: Sequence[SegmentLine], now_ms: int
) -> tuple[list[SegmentLine], int | None]:
    """Return the segments due for deletion, and the time in ms at which the next one is due (None: never).

    As in a broker, segments are deleted from oldest to newest, up to the first segment to keep. Retention by
    time also rolls and deletes the active segment.
    """
    surplus = 0
    if job.retention_bytes is not None:
        surplus = sum(s.size_bytes for s in segments) - job.retention_bytes
    due: list[SegmentLine] = []
    for segment in segments:
        too_old = job.retention_ms is not None and segment.last_ms + job.retention_ms < now_ms
        too_much = surplus - segment.size_bytes >= 0 and segment is not segments[-1]
        if not too_old and not too_much:
            return due, None if job.retention_ms is None else segment.last_ms + job.retention_ms
        surplus -= segment.size_bytes
        due.append(segment)
    return due, None


def hot_keys(rows: Any, count: int) -> list[KeyLine]:
    """Return the `count` most frequent keys of each topic. Control records and null keys are ignored."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    given = rows.where("NOT is_control").groupBy("topic", "key").count()
    by_rank = Window.partitionBy("topic").orderBy(f.desc("count"), "key")
    whole = f.sum("count").over(Window.partitionBy("topic"))
    ranked = given.withColumn("total", whole).where("key IS NOT NULL")
    top = ranked.withColumn("rank", f.row_number().over(by_rank)).where(f.col("rank") <= count)
    found = top.orderBy("topic", "rank").collect()
    return [
        KeyLine(row["topic"], _text(bytes(row["key"])), row["count"], row["count"] / row["total"])
        for row in found
    ]


def _text(key: bytes) -> str:
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return key.hex()
    return text if text.isprintable() else key.hex()


def _scan(rows: Any) -> tuple[list[SegmentLine], dict[tuple[str, int], Sizes]]:
    """Return a line for each segment, and the value sizes for each partition, in one pass."""
    from pyspark.sql import functions as f

    once = f.when(f.col("batch_index") == 0, f.col("batch_bytes")).otherwise(0)
    raw = f.when(f.col("batch_index") == 0, f.col("batch_raw_bytes")).otherwise(0)
    size = f.coalesce(f.col("value_bytes"), f.lit(0))
    names = ("topic", "partition", "segment")
    found = (
        rows.groupingSets([names, names[:2]], *names)
        .agg(
            f.count("*").alias("rows"),
            f.sum(once).alias("size_bytes"),
            f.sum(raw).alias("raw_bytes"),
            f.unix_millis(f.max("timestamp")).alias("last_ms"),
            f.percentile_approx(size, [0.5, 0.99, 1.0], f.lit(1000)).alias("sizes"),
            f.array_sort(f.collect_set("compression")).alias("codecs"),
        )
        .collect()
    )
    columns = ("topic", "partition", "segment", "rows", "size_bytes", "raw_bytes", "last_ms")
    lines = [SegmentLine(*(row[name] for name in columns)) for row in found if row["segment"] is not None]
    sizes = {}
    for row in found:
        if row["segment"] is None:
            p50, p99, largest = row["sizes"]
            sizes[row["topic"], row["partition"]] = Sizes(p50, p99, largest, tuple(row["codecs"]))
    return lines, sizes
