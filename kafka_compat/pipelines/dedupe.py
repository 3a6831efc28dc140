"""Job `dedupe`: copy topics to one topic, without records that are repeated within a time span.

Two records are duplicates if they have the same id and their timestamps differ by at most `within`. Only the
first of them is kept. The watermark bounds the state: it is the latest timestamp of earlier batches minus
`within`. Records with earlier timestamps are late, and are dropped. An id is forgotten after 2 × `within`,
because any further duplicate of it is late.

Spark's dropDuplicatesWithinWatermark keeps an arbitrary record per id and batch, regardless of timestamps,
and may keep a different record when the batch runs again after a crash. This job always keeps the first
record in the order of (timestamp, topic, partition, offset).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from kafka_compat.pipelines.checkpoint import batch_range
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.exact_sink import Ends, Target, target_of, write_exactly_once
from kafka_compat.pipelines.executors import send_code_to_executors
from kafka_compat.pipelines.job_folder import JobFolder
from kafka_compat.pipelines.stream_job import Process, StreamJob, StreamReport, run_stream
from kafka_compat.pipelines.versions import Versions
from kafka_compat.pipelines.watermark import latest_time


def without_repeats(batches: Iterator[Any], within_ms: int) -> Iterator[Any]:
    """Yield the rows that are not duplicates of earlier rows. Runs on Spark's executors, and requires
    pyarrow.

    The input is sorted by id. For each id, remembered rows (with a null topic; not yielded) come first, and
    then the other rows, sorted by at_ms. A row is a duplicate if a remembered or kept row with the same id
    has a timestamp at most `within_ms` apart. Memory use: a batch, and the remembered rows of one id.
    """
    current: bytes | None = None
    remembered: list[int] = []
    last_kept: int | None = None
    for batch in batches:
        keep = []
        columns = (batch.column(name).to_pylist() for name in ("id", "at_ms"))
        known = batch.column("topic").is_null().to_pylist()
        for identity, at_ms, is_known in zip(*columns, known, strict=True):
            if identity != current:
                current, remembered, last_kept = identity, [], None
            if is_known:
                remembered.append(at_ms)
                keep.append(False)
                continue
            repeats = last_kept is not None and at_ms - last_kept <= within_ms
            repeats = repeats or any(abs(at_ms - other) <= within_ms for other in remembered)
            keep.append(not repeats)
            if not repeats:
                last_kept = at_ms
        yield batch.filter(pa.array(keep, pa.bool_()))


_COUNTS = ("kept", "repeated", "late", "without_id")
_NOTHING: dict[str, Any] = {**dict.fromkeys(_COUNTS, 0), "remembered": 0, "max_ms": None, "version": None}


@dataclass(frozen=True, slots=True)
class DedupeJob:
    """Parameters of a copy without duplicates. `source` selects the records.

    `by` defines a record's id (see `id_expression`). If `target_servers` is None, the target is the source
    cluster. `target_options` contains librdkafka properties. With `create`, the topic is created if it is
    missing, and missing partitions are added.
    """

    source: StreamJob
    to_topic: str
    within_ms: int
    by: str | None = None
    target_servers: str | None = None
    target_options: Sequence[str] = ()
    create: bool = False


def id_expression(by: str | None) -> str:
    """Return an SQL expression for a record's ID, over the source's columns.

    `by` is key, value, header:NAME, or another SQL expression. None means key and value together; both may be
    null. Records whose ID is null have no duplicates.
    """
    if by is None:
        sizes = "coalesce(length(key), -1), ':', coalesce(length(value), -1), ':'"
        return f"concat(CAST(concat({sizes}) AS BINARY), coalesce(key, X''), coalesce(value, X''))"
    if by.startswith("header:"):
        name = by.removeprefix("header:").replace("\\", "\\\\").replace("'", "\\'")
        return f"try_element_at(filter(headers, h -> h.key = '{name}'), -1).value"
    return f"CAST({by} AS STRING)" if by not in ("key", "value") else by


def keep_first(rows: Any, remembered: Any, within_ms: int) -> Any:
    """Return `rows` without the rows that duplicate an earlier row or a remembered row.

    `rows` has the source's columns, id and at_ms. `remembered` has the columns id and at_ms.
    """
    from pyspark.sql import functions as f

    send_code_to_executors()
    both = rows.unionByName(remembered, allowMissingColumns=True)
    parts = rows.sparkSession.sparkContext.defaultParallelism
    by_id = both.repartition(parts, "id").sortWithinPartitions(
        "id", f.col("topic").isNotNull(), "at_ms", "topic", "partition", "offset"
    )
    return by_id.mapInArrow(partial(without_repeats, within_ms=within_ms), both.schema)


def run_dedupe(job: DedupeJob) -> StreamReport:
    """Process the existing records, or process continuously. Raises PipelineError if the job fails."""
    if job.target_servers is None and job.to_topic in job.source.topics:
        raise NotStarted(f"{job.to_topic} cannot be both read and written.")
    target = target_of(job.source, job.target_servers, job.target_options)
    folder = job.source.folder(
        "dedupe", to_topic=job.to_topic, target=job.target_servers, within_ms=job.within_ms, by=job.by
    )
    versions = Versions(job.source.directory)

    def process(_: Any, job_id: str) -> Process:
        return partial(_dedupe, job, target, folder, versions, job_id)

    def look_at_target(partitions: Mapping[str, int]) -> None:
        target.look({job.to_topic: max(partitions.values())}, create=job.create)

    run = run_stream("dedupe", job.source, folder, process, look_at_target=look_at_target)
    total = folder.recorded(_NOTHING)
    watermark = None if total["max_ms"] is None else total["max_ms"] - job.within_ms
    figures = {name: total[name] for name in (*_COUNTS, "remembered")}
    return StreamReport(
        "dedupe",
        run,
        {**figures, "watermark_ms": watermark},
        f"{run.rows:,} records read in {run.seconds:.1f} s. In total, {total['kept']:,} were kept "
        f"({total['without_id']:,} of them without id); {total['repeated']:,} were duplicates; "
        f"{total['late']:,} were late and were omitted.\n"
        f"{total['remembered']:,} ids are stored.",
    )


def _dedupe(
    job: DedupeJob,
    target: Target,
    folder: JobFolder,
    versions: Versions,
    job_id: str,
    rows: Any,
    batch_id: int,
) -> dict[str, Any]:
    from pyspark.sql import functions as f

    _, end = batch_range(folder.checkpoint, batch_id)
    target.provide({job.to_topic: max(max(parts) for parts in end.values()) + 1}, create=job.create)
    begun: Ends = folder.begin(batch_id, {"ends": target.ends([job.to_topic])})["ends"]
    spark, before = rows.sparkSession, folder.recorded(_NOTHING)
    versions.forget_all_but([before["version"]])
    remembered = spark.createDataFrame([], "id binary, at_ms bigint")
    if before["version"] is not None:
        remembered = spark.read.schema(remembered.schema).parquet(versions.path(before["version"], "ids"))
    identity = f.unhex(f.sha2(f.expr(id_expression(job.by)).cast("binary"), 256))
    columns = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    given = rows.select(*columns, identity.alias("id"), f.unix_millis("timestamp").alias("at_ms")).persist()
    watermark = None if before["max_ms"] is None else before["max_ms"] - job.within_ms
    late = f.lit(False) if watermark is None else f.col("at_ms") < watermark
    in_time = given.where(~late)
    kept = keep_first(in_time.where("id IS NOT NULL"), remembered, job.within_ms)
    kept = kept.unionByName(in_time.where("id IS NULL")).persist()
    try:
        without_id = f.col("id").isNull() & ~late
        sums = (f.count("*"), f.count_if(late), f.count_if(without_id), latest_time(f.col("at_ms")))
        count, late_count, without_count, latest = given.agg(*sums).collect()[0]
        latest = max(filter(lambda at: at is not None, (latest, before["max_ms"])), default=None)
        version = versions.new(batch_id)
        ids = remembered.unionByName(kept.where("id IS NOT NULL").select("id", "at_ms"))
        if latest is not None:
            ids = ids.where(f.col("at_ms") >= latest - 2 * job.within_ms)
        ids.write.parquet(versions.path(version, "ids"))
        names = [f.col(name).alias(f"{name}_from") for name in ("topic", "partition", "offset")]
        to = [f.lit(job.to_topic).alias("to_topic"), f.col("partition").alias("to_partition")]
        records = kept.select(*to, "key", "value", "headers", "timestamp", *names)
        done = write_exactly_once(records, target, job_id, begun, folder.directory)
    finally:
        kept.unpersist()
        given.unpersist()
    kept_count = done.written + done.written_before
    return {
        "version": version,
        "rows": count,
        "max_ms": latest,
        "remembered": versions.table(version, "ids").num_rows,
        "kept": before["kept"] + kept_count,
        "late": before["late"] + late_count,
        "repeated": before["repeated"] + count - late_count - kept_count,
        "without_id": before["without_id"] + without_count,
    }
