"""Job `audit`: compare record counts per topic, partition and hour between tiers, as LinkedIn's Kafka audit
does.

A tier is a place that should contain the same records: a broker's topic, an archive, a mirror, or a
producer's counts. All tiers are compared with the first. Each count includes a sum of hashes of keys and
values, so that a loss and a duplicate in one bucket do not cancel out.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive_reader import archive_format, read_archive
from kafka_compat.pipelines.audit_counts import Bucket, Count, Difference, differences_between
from kafka_compat.pipelines.audit_plot import plot
from kafka_compat.pipelines.cluster import cause, look
from kafka_compat.pipelines.environment import require_matplotlib, require_spark
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.first_look import first_look
from kafka_compat.pipelines.kafka_options import client_properties, source_options
from kafka_compat.pipelines.plot_page import Origin
from kafka_compat.pipelines.progress import Progress, text_table, utc
from kafka_compat.pipelines.session import LOCAL_SPARK, SparkSettings, create_session


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier whose records are counted.

    `kind` is kafka (`place`: bootstrap servers), header (`place`: bootstrap servers; counts records that
    producers announced in a header), archive (`place`: a directory), or counts (`place`: a CSV file). `topic`
    is the topic's name in that place. It is ignored for counts.
    """

    name: str
    kind: str
    place: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class AuditJob:
    """Parameters of an audit: the tiers to compare, and the length of a bucket of record timestamps.

    `since_ms` (inclusive) and `until_ms` (exclusive) limit the timestamps, to exclude records still being
    written. If `by_partition` is False, topic totals are compared, for mirrors with other partition counts.
    `sequence_header` is for tiers of the kind header (see `announced`). `command` is shown on the plot.
    """

    tiers: Sequence[Tier]
    sequence_header: str = "kafka-compat-sequence"
    bucket_ms: int = 3_600_000
    since_ms: int | None = None
    until_ms: int | None = None
    by_partition: bool = True
    kafka_options: Sequence[str] = ()
    plot: Path | None = None
    command: str = ""
    spark: SparkSettings = LOCAL_SPARK


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Report on an audit: the counts for each tier, and the differences from the first tier."""

    counts: dict[str, dict[Bucket, Count]]
    differences: list[Difference]
    by_partition: bool
    bucket_ms: int
    seconds: float
    plots: tuple[Path, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 if all tiers match, 1 if they differ."""
        return 1 if self.differences else 0

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dict."""
        return {
            "job": "audit",
            "equal": not self.differences,
            "seconds": round(self.seconds, 3),
            "bucket_ms": self.bucket_ms,
            "plots": [str(path) for path in self.plots],
            "tiers": [
                {"tier": tier, "rows": sum(c.rows for c in counts.values()), "buckets": len(counts)}
                for tier, counts in self.counts.items()
            ],
            "differences": [
                {
                    "tier": d.tier,
                    "partition": d.partition if self.by_partition else None,
                    "bucket": utc(d.bucket_ms),
                    "expected": d.expected,
                    "found": d.found,
                    "verdict": d.verdict,
                }
                for d in self.differences
            ],
        }

    def as_text(self) -> str:
        """Return a table of the tiers' totals, and a table with one line per bucket that differs."""
        report = self.as_json()
        tiers = [[t["tier"], str(t["rows"]), str(t["buckets"])] for t in report["tiers"]]
        text = text_table(["TIER", "ROWS", "BUCKETS"], tiers)
        if not self.differences:
            return f"{text}\nAll tiers match."
        keys = ("tier", "partition", "bucket", "expected", "found", "verdict")
        lines = [["-" if d[key] is None else str(d[key]) for key in keys] for d in report["differences"]]
        return f"{text}\n\n{text_table([key.upper() for key in keys], lines)}"


def count_rows(rows: Any, bucket_ms: int, *, by_partition: bool = True) -> Any:
    """Count records per bucket. The returned columns are partition, bucket (ms), rows and checksum."""
    from pyspark.sql import functions as f

    millis = f.unix_millis("timestamp")
    bucket = millis - f.pmod(millis, f.lit(bucket_ms))
    missing = f.lit("a null, told apart from an empty value").cast("binary")
    parts = [f.coalesce(f.col(name), missing) for name in ("key", "value")]
    checksum = f.xxhash64(*parts, f.col("key").isNull(), f.col("value").isNull())
    partition = f.col("partition") if by_partition else f.lit(-1)
    return rows.groupBy(partition.alias("partition"), bucket.alias("bucket")).agg(
        f.count(f.lit(1)).alias("rows"), f.sum(checksum.cast("decimal(20,0)")).alias("checksum")
    )


def announced(rows: Any, header: str) -> Any:
    """Return the partition and timestamp of each record that producers announced in headers.

    The header's value is PRODUCER:N, where N numbers a producer's records from 0. A repeated number counts
    once. A missing number is assigned the partition and timestamp of the next existing number. Missing
    records at the end of a producer's sequence are not detected. Records without the header are not counted.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    name = header.replace("\\", "\\\\").replace("'", "\\'")
    value = f.expr(f"CAST(try_element_at(filter(headers, h -> h.key = '{name}'), -1).value AS STRING)")
    said = rows.select("partition", "timestamp", value.alias("said")).where("said RLIKE '^.*:[0-9]{1,18}$'")
    each = (
        said.withColumn("producer", f.regexp_extract("said", "^(.*):", 1))
        .withColumn("number", f.regexp_extract("said", ":([0-9]+)$", 1).cast("bigint"))
        .groupBy("producer", "number")
        .agg(f.min_by(f.struct("partition", "timestamp"), f.struct("timestamp", "partition")).alias("first"))
    )
    before = f.lag("number", 1, -1).over(Window.partitionBy("producer").orderBy("number"))
    runs = each.withColumn("run", f.sequence(before + 1, "number"))
    sent = runs.select("first.*", f.explode("run"))
    empty = [f.lit(None).cast("binary").alias(name) for name in ("key", "value")]
    return sent.select("partition", "timestamp", *empty)


def run_audit(job: AuditJob) -> AuditReport:
    """Count and compare the records in the tiers. Raises PipelineError if a tier cannot be read."""
    names = [tier.name for tier in job.tiers]
    if len(names) < 2 or len(set(names)) < len(names):
        raise NotStarted("Give at least two tiers, with different names.")
    options = source_options(job.kafka_options)
    require_spark()
    if job.plot is not None:
        require_matplotlib()
    clusters = _first_looks(job, client_properties(options))
    counted = {tier.name: read_counts(Path(tier.place), job) for tier in job.tiers if tier.kind == "counts"}
    tables = [tier for tier in job.tiers if tier.kind == "archive"]
    iceberg = any(archive_format(Path(tier.place)) == "iceberg" for tier in tables)
    spark = create_session("kafka-compat audit", replace(job.spark, iceberg=iceberg))
    counts: dict[str, dict[Bucket, Count]] = {}
    rows_of = {tier.name: _reader(spark, tier, options, job) for tier in job.tiers if tier.kind != "counts"}
    with Progress("audit", len(job.tiers), unit="tiers to count") as progress:
        for number, tier in enumerate(job.tiers):
            try:
                if tier.kind == "counts":
                    counts[tier.name] = counted[tier.name]
                else:
                    counts[tier.name] = _collect(rows_of[tier.name], job, tier.kind)
            except NotStarted:
                raise
            except Exception as error:
                raise JobFailed(f"Tier {tier.name}: {cause(error)}", "Run it again.") from error
            rows = sum(count.rows for count in counts[tier.name].values())
            progress.batch(number, rows, len(job.tiers) - number - 1)
    reference = counts[names[0]]
    differences = [d for name in names[1:] for d in differences_between(reference, name, counts[name])]
    plots: tuple[Path, ...] = ()
    if job.plot is not None:
        places = {tier.name: _place(tier, clusters.get(tier.name, "")) for tier in job.tiers}
        origin = Origin.now(job.command, _cluster_ids(clusters))
        plots = plot(job.plot, counts, differences, job.bucket_ms, places, origin)
    return AuditReport(counts, differences, job.by_partition, job.bucket_ms, progress.seconds, plots)


def _cluster_ids(clusters: Mapping[str, str]) -> str:
    tiers: dict[str, list[str]] = {}
    for name, cluster in clusters.items():
        tiers.setdefault(cluster, []).append(name)
    return "; ".join(f"{cluster} ({', '.join(names)})" for cluster, names in tiers.items() if cluster)


def _place(tier: Tier, cluster: str) -> str:
    place = f"{tier.place}/{tier.topic}" if tier.topic else tier.place
    kind = {"header": "header of", "kafka": "topic", "archive": "archive", "counts": "counts in"}[tier.kind]
    return f"{kind} {place}" + (f", cluster {cluster}" if cluster else "")


def _first_looks(job: AuditJob, properties: dict[str, str]) -> dict[str, str]:
    """Return the cluster ID of each Kafka tier. Raises NotStarted if a topic or archive does not exist."""
    clusters = {}
    for tier in job.tiers:
        if tier.kind in ("kafka", "header"):
            seen = first_look({"bootstrap.servers": tier.place, **properties}, topics=[tier.topic])
            clusters[tier.name] = seen.cluster_id if seen else ""
        elif tier.kind == "archive":
            _require_archive(tier)
    return clusters


def _require_archive(tier: Tier) -> None:
    folder = Path(tier.place)
    if archive_format(folder) == "parquet" and not any(
        (folder / f"topic_dir={tier.topic}").glob("*/*.parquet")
    ):
        raise NotStarted(f"Tier {tier.name}: {folder} holds no records of {tier.topic}.")


def read_counts(path: Path, job: AuditJob) -> dict[Bucket, Count]:
    """Read a producer's counts from a CSV file with the columns `partition`, `time_ms` and `rows`. The
    producer's buckets must not be longer than the audit's. Raises NotStarted if the file is invalid.
    """
    counts: dict[Bucket, int] = {}
    try:
        with path.open(newline="") as file:
            for line in csv.DictReader(file):
                when = int(line["time_ms"])
                if (job.since_ms is None or when >= job.since_ms) and (
                    job.until_ms is None or when < job.until_ms
                ):
                    partition = int(line["partition"]) if job.by_partition else -1
                    bucket = (partition, when - when % job.bucket_ms)
                    counts[bucket] = counts.get(bucket, 0) + int(line["rows"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise NotStarted(
            f"{path}: {error!r}", "Counts are CSV with the columns partition, time_ms and rows."
        ) from None
    return {bucket: Count(rows, None) for bucket, rows in counts.items()}


def _reader(spark: Any, tier: Tier, options: dict[str, str], job: AuditJob) -> Any:
    """Return a DataFrame of the tier's records. Raises NotStarted if the tier's topic does not exist."""
    if tier.kind in ("kafka", "header"):
        # Query end offsets now, so that all tiers are read up to about the same moment.
        view = look(
            spark, {"bootstrap.servers": tier.place, **client_properties(options)}, topics=[tier.topic]
        )
        ends = {topic: {str(p): end for p, end in parts.items()} for topic, parts in view.latest.items()}
        own = {
            "kafka.bootstrap.servers": tier.place,
            "subscribe": tier.topic,
            "startingOffsets": "earliest",
            "endingOffsets": json.dumps(ends),
            "kafka.max.poll.records": "10000",
            "includeHeaders": str(tier.kind == "header").lower(),
        }
        rows = spark.read.format("kafka").options(**{**options, **own}).load()
        return rows if tier.kind == "kafka" else announced(rows, job.sequence_header)
    from kafka_compat.pipelines.replay import archive_schema

    return read_archive(spark, Path(tier.place), tier.topic, archive_schema())


def _collect(rows: Any, job: AuditJob, kind: str) -> dict[Bucket, Count]:
    from pyspark.sql import functions as f

    if job.since_ms is not None:
        rows = rows.where(f.unix_millis("timestamp") >= job.since_ms)
    if job.until_ms is not None:
        rows = rows.where(f.unix_millis("timestamp") < job.until_ms)
    counted = count_rows(rows, job.bucket_ms, by_partition=job.by_partition).collect()
    return {
        (row["partition"], row["bucket"]): Count(
            row["rows"], None if kind == "header" else int(row["checksum"])
        )
        for row in counted
    }
