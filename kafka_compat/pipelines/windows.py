"""Job `windows`: compute counts and sums by event-time window, and write invalid rows, with reasons, to a
dead-letter topic.

    DIR/versions/N-RUN/open   the windows that are not closed yet, as of batch N

After each batch, the changed windows are written to the result topic, keyed by window and group. Only the
last record of a key is valid. The watermark is the latest time of earlier batches (see watermark.py). A
window closes when the watermark passes its end plus the lateness; later rows are dead letters. Every row is
counted in a window or becomes a dead letter; this is verified before every commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from kafka_compat.pipelines.checkpoint import batch_range
from kafka_compat.pipelines.decode.decoding import DecodeSettings, Decoding
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.exact_sink import Ends, Target, target_of, write_exactly_once
from kafka_compat.pipelines.job_folder import JobFolder
from kafka_compat.pipelines.stream_job import Process, StreamJob, StreamReport, run_stream
from kafka_compat.pipelines.versions import Versions
from kafka_compat.pipelines.watermark import latest_time
from kafka_compat.pipelines.windows_rows import (
    DECODED_COLUMNS,
    WindowQuery,
    count_by_window,
    dead_letters,
    judge,
    merge,
    results,
)

_FIGURES = ("read_total", "closed_rows", "open_rows", "open_windows", "dead_letters", "reasons")
_NOTHING: dict[str, Any] = {**dict.fromkeys(_FIGURES, 0), "reasons": {}, "max_ms": None, "version": None}


@dataclass(frozen=True, slots=True)
class WindowsJob:
    """Parameters of a windowed aggregation. `source` selects the records. Results and dead letters are
    written to two topics of one cluster.

    If `target_servers` is None, the target is the source cluster. `target_options` contains librdkafka
    properties. With `create`, missing topics are created and missing partitions added. `decode` decodes
    values with schemas of a registry, instead of the query's format and schema.
    """

    source: StreamJob
    query: WindowQuery
    to_topic: str
    dead_letter_topic: str
    target_servers: str | None = None
    target_options: Sequence[str] = ()
    create: bool = False
    decode: DecodeSettings | None = None


def run_windows(job: WindowsJob) -> StreamReport:
    """Process the existing records, or process continuously. Raises PipelineError if the job fails."""
    if job.to_topic == job.dead_letter_topic:
        raise NotStarted("Results and dead letters need two topics.")
    if job.target_servers is None and {job.to_topic, job.dead_letter_topic} & set(job.source.topics):
        raise NotStarted("A topic cannot be both read and written.")
    decoding = None if job.decode is None else Decoding(job.decode, one_schema=True)
    target = target_of(job.source, job.target_servers, job.target_options)
    folder = job.source.folder(
        "windows",
        to_topic=job.to_topic,
        dead_letter_topic=job.dead_letter_topic,
        target=job.target_servers,
        question=asdict(job.query),
    )

    def process(_: Any, job_id: str) -> Process:
        return partial(_batch, job, target, folder, job_id, decoding)

    def look_at_target(partitions: Mapping[str, int]) -> None:
        if decoding is not None:
            decoding.check(partitions)
            if not job.query.schema:
                # Spark parses an SQL schema, after it has started.
                _check_columns(job.query, decoding)
        target.look(_wanted(job, max(partitions.values())), create=job.create)

    run = run_stream("windows", job.source, folder, process, look_at_target=look_at_target)
    totals = folder.recorded(_NOTHING)
    figures = {name: totals[name] for name in _FIGURES}
    return StreamReport("windows", run, figures, _text(figures))


def _text(figures: Mapping[str, Any]) -> str:
    """Format the row counts of closed windows, open windows and dead letters, and a line for each reason."""
    lines = [
        "{read_total:,} rows read = {closed_rows:,} in closed windows + {open_rows:,} in "
        "{open_windows:,} open ones + {dead_letters:,} dead letters.".format(**figures)
    ]
    lines += [f"  {count:,} {reason}" for reason, count in sorted(figures["reasons"].items())]
    return "\n".join(lines)


def _check_columns(query: WindowQuery, decoding: Decoding) -> None:
    """Raise NotStarted if the schema lacks a column of the query."""
    fields = decoding.fields()
    if fields is None:
        raise NotStarted("The values have no columns: their schema is not a record, a message or an object.")
    wanted = [
        *query.group_by,
        *query.sums,
        *query.minima,
        *query.maxima,
        *([query.time] if query.time else []),
    ]
    missing = [name for name in wanted if name not in fields]
    if missing:
        raise NotStarted(f"The schema has no column {missing[0]}.", f"Its columns: {', '.join(fields)}.")


def _wanted(job: WindowsJob, partitions: int) -> dict[str, int]:
    """Return the number of partitions that each topic needs. Only dead letters keep their partitions."""
    return {job.dead_letter_topic: partitions, job.to_topic: partitions if job.create else 1}


def _batch(
    job: WindowsJob,
    target: Target,
    folder: JobFolder,
    job_id: str,
    decoding: Decoding | None,
    rows: Any,
    batch_id: int,
) -> dict[str, Any]:
    from pyspark.sql import functions as f

    _, end = batch_range(folder.checkpoint, batch_id)
    needed = max(max(partitions) for partitions in end.values()) + 1
    topics = _wanted(job, needed)
    target.provide(topics, create=job.create)
    begun: Ends = folder.begin(batch_id, {"ends": target.ends(sorted(topics))})["ends"]
    before = folder.recorded(_NOTHING)
    spark, query, versions = rows.sparkSession, job.query, Versions(folder.directory)
    versions.forget_all_but([before["version"]])
    if decoding is not None:
        rows = decoding.added(rows, DECODED_COLUMNS)
    judged = judge(rows, query, before["max_ms"]).persist()
    added = count_by_window(judged.where("reason IS NULL"), query)
    open_before = spark.createDataFrame([], added.schema)
    if before["version"] is not None:
        open_before = spark.read.schema(added.schema).parquet(versions.path(before["version"], "open"))
    merged = merge(open_before, added, query).persist()
    try:
        by_reason = {row["reason"]: row for row in _summed(judged).collect()}
        times = (before["max_ms"], by_reason[None]["latest"] if None in by_reason else None)
        latest = max((time for time in times if time is not None), default=None)
        bad = {reason: row["count"] for reason, row in by_reason.items() if reason is not None}
        closed = f.lit(False) if latest is None else _closed(query, latest)
        version = versions.new(batch_id)
        merged.where(~closed).drop("changed").write.parquet(versions.path(version, "open"))
        of_closed = f.coalesce(f.sum(f.when(closed, f.col("rows"))), f.lit(0))
        closed_rows, changed = merged.agg(of_closed, f.count_if("changed")).collect()[0]
        partitions = len(begun[job.to_topic])
        records = results(merged.where("changed"), query, job.to_topic, partitions, batch_id).unionByName(
            dead_letters(judged.where("reason IS NOT NULL"), job.dead_letter_topic)
        )
        done = write_exactly_once(records, target, job_id, begun, folder.directory)
    finally:
        merged.unpersist()
        judged.unpersist()
    rows_by_window = versions.table(version, "open", ["rows"]).column("rows").to_pylist()
    open_rows, open_windows = sum(rows_by_window), len(rows_by_window)
    count = sum(row["count"] for row in by_reason.values())
    reasons = {
        reason: before["reasons"].get(reason, 0) + bad.get(reason, 0)
        for reason in {**before["reasons"], **bad}
    }
    totals = {
        "read_total": before["read_total"] + count,
        "closed_rows": before["closed_rows"] + closed_rows,
        "open_rows": open_rows,
        "dead_letters": before["dead_letters"] + done.written + done.written_before - changed,
    }
    if totals["read_total"] != totals["closed_rows"] + open_rows + totals["dead_letters"]:
        raise JobFailed(f"Rows are missing, or counted twice: {totals}. Nothing was committed.")
    more = {"open_windows": open_windows, "reasons": reasons, "max_ms": latest, "version": version}
    return {"rows": count, **totals, **more}


def _summed(judged: Any) -> Any:
    """Return the number of rows and their latest time for each value of the column `reason` (see `judge`)."""
    from pyspark.sql import functions as f

    return judged.groupBy("reason").agg(
        f.count("*").alias("count"), latest_time(f.col("at_ms")).alias("latest")
    )


def _closed(query: WindowQuery, watermark_ms: int) -> Any:
    from pyspark.sql import functions as f

    return f.col("window_start_ms") + query.window_ms + query.lateness_ms <= watermark_ms
