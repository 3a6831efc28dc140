"""Job `archive`: write topics to Parquet files or a table, each record exactly once (see archive_store)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive_store import TABLE, ArchiveState, ArchiveStore, StagedFile
from kafka_compat.pipelines.archive_table import FORMATS, ArchiveTable
from kafka_compat.pipelines.checkpoint import Offsets, batch_range, next_offsets
from kafka_compat.pipelines.cluster import ClusterView, lost_since
from kafka_compat.pipelines.decode.columns import ColumnSpec, by_topic
from kafka_compat.pipelines.decode.decoding import DecodeSettings, Decoding, specs_of
from kafka_compat.pipelines.environment import require_deltalake, require_iceberg, spark_release
from kafka_compat.pipelines.errors import NotStarted, RecordsLost
from kafka_compat.pipelines.executors import send_code_to_executors
from kafka_compat.pipelines.progress import Progress, text_table
from kafka_compat.pipelines.stream_job import Source, StreamJob, open_source, run_batches

COLUMNS = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")


@dataclass(frozen=True, slots=True)
class ArchiveJob(StreamJob):
    """Parameters of an archive job: the topics and the target directory.

    `offsets_per_batch` limits the work lost in a crash, and the time between progress updates. With
    `accept_loss`, records deleted from Kafka before they were archived are counted as gaps. `decode` adds
    columns with decoded values.

    With a `format` other than parquet, the files are those of a table. After every `compact_every` batches
    (0: never), small files are merged, and versions of the table older than `keep_versions_ms` are deleted.
    """

    offsets_per_batch: int = 1_000_000
    accept_loss: bool = False
    decode: DecodeSettings | None = None
    format: str = "parquet"
    compact_every: int = 100
    keep_versions_ms: int = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """Report on an archive run: the added rows and batches, the archive's totals, and remaining offsets."""

    directory: Path
    state: ArchiveState
    rows: int
    batches: int
    seconds: float
    complete: bool
    behind: Offsets = field(default_factory=dict)
    continuous: bool = False
    undecoded: int | None = None
    """Number of this run's records that could not be decoded. None without decoding."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or 130 if a signal interrupted a non-continuous run."""
        return 0 if self.complete or self.continuous else 130

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dict, with one entry per partition."""
        return {
            "job": "archive",
            "directory": str(self.directory),
            "complete": self.complete,
            "rows": self.rows,
            "batches": self.batches,
            "seconds": round(self.seconds, 3),
            **({} if self.undecoded is None else {"undecoded": self.undecoded}),
            "partitions": [
                {
                    "topic": topic,
                    "partition": partition,
                    "first_offset": totals.first,
                    "last_offset": totals.last,
                    "rows": totals.rows,
                    "gaps": totals.gaps,
                    "gap_ranges": totals.gap_ranges,
                    "offsets_behind": self.behind.get(topic, {}).get(partition, 0),
                }
                for topic, partitions in sorted(self.state.topics.items())
                for partition, totals in sorted(partitions.items())
            ],
        }

    def as_text(self) -> str:
        """Return a table with one line per partition, and a summary line."""
        header = ["TOPIC", "PARTITION", "FIRST-OFFSET", "LAST-OFFSET", "ROWS", "GAPS"]
        keys = ("topic", "partition", "first_offset", "last_offset", "rows", "gaps")
        entries = self.as_json()["partitions"]
        rows = [["-" if entry[key] is None else str(entry[key]) for key in keys] for entry in entries]
        total = sum(entry["rows"] for entry in entries)
        rate = self.rows / max(self.seconds, 1e-3)
        summary = (
            f"{self.rows:,} rows archived in {self.seconds:.1f} s ({rate:,.0f} rows/s); "
            f"{self.directory} holds {total:,} rows."
        )
        if self.undecoded:
            summary += f"\n{self.undecoded:,} rows could not be decoded: see the column decode_error."
        return f"{text_table(header, rows)}\n{summary}"


def write_rows(
    rows: Any, directory: Path, specs: Mapping[str, ColumnSpec] | None = None, *, wide_numbers: bool = False
) -> tuple[list[StagedFile], int]:
    """Write the source's rows to files in `directory`, and return the files, and the number of values that
    could not be decoded. `specs` describes how to decode the values of each topic, and `wide_numbers` makes
    their integers long and their floats double.

    All executors must be able to access `directory`. Each Spark partition contains a range of one Kafka
    partition in offset order, so no shuffle or sort is needed.
    """
    from kafka_compat.pipelines import archive_writer
    from kafka_compat.pipelines.offset_runs import OffsetRuns, int64_array

    send_code_to_executors()
    add = None if specs is None else by_topic(specs, wide_numbers=wide_numbers)
    write = partial(archive_writer.write_range, directory=str(directory.resolve()), add_columns=add)
    files = rows.select(*COLUMNS).mapInArrow(write, archive_writer.FILES_SCHEMA).collect()
    staged = [
        StagedFile(
            **{name: file[name] for name in ("name", "topic", "partition", "day", "first", "last")},
            runs=OffsetRuns(int64_array(file["runs_first"]), int64_array(file["runs_last"])),
        )
        for file in files
    ]
    return staged, sum(file["undecoded"] for file in files)


def run_archive(job: ArchiveJob) -> ArchiveReport:
    """Archive all current records, or archive continuously. Raises PipelineError if the job fails."""
    if job.format not in FORMATS:
        raise NotStarted(f"Unknown format {job.format}.", f"The formats are {', '.join(FORMATS)}.")
    store = ArchiveStore(job.directory, job.format)
    decoding = None if job.decode is None else Decoding(job.decode, all_registered=job.pattern is None)
    check_schemas = None if decoding is None else decoding.check

    def check() -> None:
        store.check()
        if job.format == "delta":
            require_deltalake()
        if job.format == "iceberg":
            require_iceberg(spark_release())

    if job.format == "iceberg":
        job = replace(job, spark=replace(job.spark, iceberg=True))
    with open_source(
        "archive", job, check, fail_on_loss=not job.accept_loss, look_at_target=check_schemas
    ) as source:
        return _archive(job, store, source, decoding)


def _table(job: ArchiveJob, spark: Any) -> ArchiveTable | None:
    directory = job.directory / TABLE
    if job.format == "delta":
        from kafka_compat.pipelines.delta_table import DeltaArchive

        return DeltaArchive(directory)
    if job.format == "iceberg":
        from kafka_compat.pipelines.iceberg_table import IcebergArchive

        return IcebergArchive(directory, spark)
    return None


def _archive(
    job: ArchiveJob, store: ArchiveStore, source: Source, decoding: Decoding | None
) -> ArchiveReport:
    table = _table(job, source.spark)
    before, view = store.open(table), source.view
    undecoded = 0
    _require_continuity(job, view, next_offsets(store.checkpoint), before)
    with Progress("archive", _total(_behind(view, before))) as progress:

        def archive_batch(rows: Any, batch_id: int) -> None:
            nonlocal undecoded
            if store.is_committed(batch_id):
                return
            start, end = batch_range(store.checkpoint, batch_id)
            # A table's column keeps its type when a schema changes from int to long.
            files, bad = write_rows(
                rows,
                store.staging_directory(batch_id),
                specs_of(decoding, end),
                wide_numbers=table is not None,
            )
            undecoded += bad
            before_rows = _rows(store.state())
            state = store.commit(batch_id, files, start, end, view.topic_ids)
            if table is not None and job.compact_every and (batch_id + 1) % job.compact_every == 0:
                table.compact(job.keep_versions_ms)
            progress.batch(batch_id, _rows(state) - before_rows, _total(_behind(view, state)))

        complete = run_batches(
            source.stream(), archive_batch, store.checkpoint, continuous_interval_s=job.continuous_interval_s
        )
    state = store.state()
    return ArchiveReport(
        job.directory,
        state,
        progress.rows,
        progress.batches,
        progress.seconds,
        complete,
        _behind(view, state),
        job.continuous_interval_s is not None,
        None if decoding is None else undecoded,
    )


def _require_continuity(job: ArchiveJob, view: ClusterView, archived: Offsets, state: ArchiveState) -> None:
    """Raise RecordsLost if the archive cannot be continued, or has gaps and `accept_loss` is false."""
    lost = lost_since(view, archived, state.topic_ids)
    fatal = [reason for reason in lost if "not archived" not in reason]
    if fatal:
        raise RecordsLost("\n".join(fatal), "Archive the topic as it is now to a new directory.")
    if lost and not job.accept_loss:
        raise RecordsLost("\n".join(lost), "To continue and count them as gaps, add --accept-loss.")


def _behind(view: ClusterView, state: ArchiveState) -> Offsets:
    """Return each partition's number of unarchived offsets, up to its end offset at the start of the run."""
    behind: Offsets = {}
    for topic, ends in view.latest.items():
        for partition, end in ends.items():
            totals = state.topics.get(topic, {}).get(partition)
            done = totals.end if totals else view.earliest[topic][partition]
            behind.setdefault(topic, {})[partition] = max(0, end - done)
    return behind


def _total(offsets: Offsets) -> int:
    return sum(sum(partitions.values()) for partitions in offsets.values())


def _rows(state: ArchiveState) -> int:
    return sum(totals.rows for partitions in state.topics.values() for totals in partitions.values())
