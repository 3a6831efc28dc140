"""What jobs that stream from topics share: their common settings, and the way from there to batches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.checkpoint import Offsets, batch_range, next_offsets
from kafka_compat.pipelines.cluster import ClusterView, look, lost_since
from kafka_compat.pipelines.environment import require_spark
from kafka_compat.pipelines.errors import NotStarted, RecordsLost
from kafka_compat.pipelines.first_look import first_look
from kafka_compat.pipelines.folder_lock import FolderLock
from kafka_compat.pipelines.job_folder import JobFolder
from kafka_compat.pipelines.kafka_options import client_properties, source_options
from kafka_compat.pipelines.progress import Progress
from kafka_compat.pipelines.runner import kafka_stream, run_batches
from kafka_compat.pipelines.session import session_of


@dataclass(frozen=True, slots=True)
class StreamJob:
    """What to read, and with which Spark. `topics` or `pattern` (for whole names), not both.

    `offsets_per_batch` bounds a batch. `continuous_interval_s` None ends the job when all that was there at
    its start is done.
    """

    bootstrap_servers: str
    directory: Path
    topics: Sequence[str] = ()
    pattern: str | None = None
    kafka_options: Sequence[str] = ()
    master: str = "local[*]"
    jars: Path | None = None
    driver_memory: str = "1g"
    offsets_per_batch: int = 200_000
    continuous_interval_s: float | None = None
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class StreamRun:
    """A run: rows read, batches, seconds, whether it reached its end, and its exit code."""

    rows: int
    batches: int
    seconds: float
    complete: bool
    exit_code: int


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What a job did: the run, the job's own figures (totals of all runs, most of them), and a text."""

    job: str
    run: StreamRun
    figures: Mapping[str, Any]
    text: str

    @property
    def exit_code(self) -> int:
        """0, or 130 when a signal ended the run before its end."""
        return self.run.exit_code

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        run = self.run
        return {
            "job": self.job,
            "complete": run.complete,
            "rows": run.rows,
            "batches": run.batches,
            "seconds": round(run.seconds, 3),
            **self.figures,
        }

    def as_text(self) -> str:
        """The report for people, a few lines."""
        return self.text


@dataclass(frozen=True, slots=True)
class Source:
    """What a job reads from: Spark's session, the topics as they are now, and options of Spark's source."""

    job: StreamJob
    spark: Any
    view: ClusterView
    options: dict[str, str]

    def stream(self) -> Any:
        """The streaming DataFrame of the job's topics."""
        job = self.job
        names = ",".join(job.topics) or None
        return kafka_stream(
            self.spark, job.bootstrap_servers, self.options, topics=names, pattern=job.pattern
        )


LookAtTarget = Callable[[Mapping[str, int]], None]
"""(partitions of each topic that is read) → NotStarted unless the target can take them."""


@contextmanager
def opened(
    name: str,
    job: StreamJob,
    check: Callable[[], None],
    *,
    fail_on_loss: bool = True,
    look_at_target: LookAtTarget | None = None,
) -> Iterator[Source]:
    """Start Spark and look at the topics, once `check()` (of the job's folder), the arguments and a first
    look at the clusters are good.

    The job's folder is locked meanwhile. Raises NotStarted before anything is touched.
    """
    options = source_options(job.kafka_options)
    options.setdefault("maxOffsetsPerTrigger", str(job.offsets_per_batch))
    options["failOnDataLoss"] = str(fail_on_loss).lower()
    if bool(job.topics) == bool(job.pattern):
        raise NotStarted("Give either --topic or --topic-pattern.")
    lock = FolderLock(job.directory)
    lock.await_free()
    check()
    require_spark()
    properties = {"bootstrap.servers": job.bootstrap_servers, **client_properties(options)}
    seen = first_look(properties, topics=job.topics, pattern=job.pattern)
    partitions = dict.fromkeys(job.topics, 1) if seen is None else seen.partitions
    if partitions and look_at_target is not None:
        look_at_target(partitions)
    spark = session_of(name, job)
    view = look(spark, properties, topics=job.topics, pattern=job.pattern)
    if not view.topic_ids:
        raise NotStarted(f"No topic on {job.bootstrap_servers} matches {job.pattern}.")
    lock.hold(spark._jvm)
    try:
        yield Source(job, spark, view, options)
    finally:
        lock.release()


Process = Callable[[Any, int], dict[str, Any]]
"""(rows of a batch, its id) → what its commit shall record; `rows` among it for the progress."""


def run_stream(
    name: str,
    job: StreamJob,
    folder: JobFolder,
    process: Callable[[Any, str], Process],
    committed: Callable[[], None] | None = None,
    look_at_target: LookAtTarget | None = None,
) -> StreamRun:
    """Read from where the folder's checkpoint ends; raises PipelineError.

    `process(spark, job_id)` is called once, and its result for each batch that is not committed yet, at least
    once, and with the same offsets each time. `committed()` follows each commit, unless a kill comes in
    between. `look_at_target` is asked before Spark starts. The job's folder is locked meanwhile.
    """
    with opened(name, job, folder.check, look_at_target=look_at_target) as source:
        view = source.view
        work = process(source.spark, folder.open())
        last = folder.last()
        topic_ids = last[1]["topic_ids"] if last else {}
        lost = lost_since(view, next_offsets(folder.checkpoint), topic_ids)
        if lost:
            raise RecordsLost("\n".join(lost), "Start in a new folder with the topic as it is now.")

        def behind() -> int:
            done = next_offsets(folder.checkpoint)
            return _behind(view.earliest, view.latest, done)

        with Progress(name, behind()) as progress:

            def batch(rows: Any, batch_id: int) -> None:
                if folder.is_committed(batch_id):
                    return
                value = work(rows, batch_id)
                _, end = batch_range(folder.checkpoint, batch_id)
                folder.commit(batch_id, {**value, "topic_ids": {**topic_ids, **view.topic_ids}})
                if committed is not None:
                    committed()
                progress.batch(batch_id, value["rows"], _behind(view.earliest, view.latest, end))

            complete = run_batches(
                source.stream(), batch, folder.checkpoint, continuous_interval_s=job.continuous_interval_s
            )
    well = complete or job.continuous_interval_s is not None
    return StreamRun(progress.rows, progress.batches, progress.seconds, complete, 0 if well else 130)


def _behind(earliest: Offsets, latest: Offsets, done: Offsets) -> int:
    """Offsets up to `latest` that lie behind `done`."""
    return sum(
        max(0, end - done.get(topic, {}).get(partition, earliest[topic][partition]))
        for topic, partitions in latest.items()
        for partition, end in partitions.items()
    )
