"""Common code for jobs that stream from topics: parameters, and the processing of batches."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.checkpoint import Offsets, batch_range, next_offsets
from kafka_compat.pipelines.cluster import ClusterView, cause, look, lost_since
from kafka_compat.pipelines.environment import require_spark
from kafka_compat.pipelines.errors import JobFailed, NotStarted, PipelineError, RecordsLost
from kafka_compat.pipelines.first_look import first_look
from kafka_compat.pipelines.job_folder import FolderLock, JobFolder
from kafka_compat.pipelines.kafka_options import client_properties, source_options
from kafka_compat.pipelines.progress import Progress
from kafka_compat.pipelines.session import LOCAL_SPARK, SparkSettings, create_session


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that is set on SIGINT and SIGTERM. Outside of the main thread, it is never set."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


POLL_S = 0.5


def kafka_stream(
    spark: Any, bootstrap_servers: str, options: Mapping[str, str], *, topics: str | None, pattern: str | None
) -> Any:
    """Return a streaming DataFrame of Spark's Kafka source, with headers.

    By default, topics are read from the beginning. kafka.max.poll.records is raised from 500, because the
    source requests the partition's end offset at every poll.
    """
    # Anchor the pattern, because Spark selects all topics whose name contains a match.
    chosen = {"subscribe": topics} if pattern is None else {"subscribePattern": f"^(?:{pattern})$"}
    defaults = {"startingOffsets": "earliest", "kafka.max.poll.records": "10000"}
    own = {"kafka.bootstrap.servers": bootstrap_servers, "includeHeaders": "true"}
    return spark.readStream.format("kafka").options(**{**defaults, **options, **own, **chosen}).load()


def run_batches(
    stream: Any,
    process: Callable[[Any, int], None],
    checkpoint: Path,
    *,
    continuous_interval_s: float | None = None,
) -> bool:
    """Pass every micro-batch of `stream` to `process(rows, batch_id)`, in order and at least once.

    Without an interval, process all available records, and return True. With an interval, process a batch at
    every interval. Return False after SIGINT or SIGTERM. Raises a PipelineError from `process`, RecordsLost
    if Kafka has deleted records that the checkpoint requires, and JobFailed after any other error.
    """
    failures: list[Exception] = []

    def guarded(rows: Any, batch_id: int) -> None:
        try:
            process(rows, batch_id)
        except Exception as error:
            failures.append(error)
            raise

    if continuous_interval_s is None:
        trigger: dict[str, Any] = {"availableNow": True}
    else:
        trigger = {"processingTime": f"{int(continuous_interval_s * 1000)} milliseconds"}
    writer = stream.writeStream.foreachBatch(guarded).option("checkpointLocation", str(checkpoint.resolve()))
    with stop_signals() as stopped:
        query = None
        try:
            query = writer.trigger(**trigger).start()
            while not stopped.is_set():
                if query.awaitTermination(POLL_S):
                    return True
            return False
        except Exception as error:
            if stopped.is_set():
                return False
            raise _explained(error, failures) from error
        finally:
            if query is not None:
                _stop(query)


def _explained(error: Exception, failures: list[Exception]) -> PipelineError:
    """Return the error to report to the user: the job's own error, or an error with Spark's root cause."""
    for failure in failures:
        if isinstance(failure, PipelineError):
            return failure
    reason = cause(failures[0] if failures else error)
    if "data may have been missed" in reason or "KAFKA_DATA_LOSS" in str(error):
        return RecordsLost(
            f"Records were deleted from the topic before they were read: {reason}",
            "Retention overtook the job, or the topic was deleted. --accept-loss continues and counts gaps.",
        )
    return JobFailed(
        reason, "Finished batches are kept: run the same command again to continue. --verbose prints more."
    )


def _stop(query: Any) -> None:
    try:
        query.stop()
    except Exception as error:
        # Ignore the error: the query has failed or the JVM has exited, and the caller reports that.
        del error


@dataclass(frozen=True, slots=True)
class StreamJob:
    """The topics to read, and the Spark settings. Either `topics` or `pattern` is set. A pattern matches
    entire names.

    `offsets_per_batch` is the maximum number of offsets in a batch. If `continuous_interval_s` is None, the
    job ends after processing all records that existed at its start.
    """

    bootstrap_servers: str
    directory: Path
    topics: Sequence[str] = ()
    pattern: str | None = None
    kafka_options: Sequence[str] = ()
    spark: SparkSettings = LOCAL_SPARK
    offsets_per_batch: int = 200_000
    continuous_interval_s: float | None = None

    def folder(self, job: str, **settings: Any) -> JobFolder:
        """Return the job's directory. The topics and `settings` must be the same in every run."""
        chosen = {"topics": sorted(self.topics), "pattern": self.pattern}
        return JobFolder(self.directory, {"job": job, **chosen, **settings})


@dataclass(frozen=True, slots=True)
class StreamRun:
    """Figures for a run: rows, batches, seconds, whether the run was complete, and the exit code."""

    rows: int
    batches: int
    seconds: float
    complete: bool
    exit_code: int


@dataclass(frozen=True, slots=True)
class StreamReport:
    """Report on a job: the run, the job's figures (mostly totals over all runs), and the report as text."""

    job: str
    run: StreamRun
    figures: Mapping[str, Any]
    text: str

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or 130 if a signal interrupted a non-continuous run."""
        return self.run.exit_code

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dict."""
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
        """Return the report as a few lines of text."""
        return self.text


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a running job: Spark's session, the topics, and the options for Spark's Kafka source."""

    job: StreamJob
    spark: Any
    view: ClusterView
    options: dict[str, str]

    def stream(self) -> Any:
        """Return a streaming DataFrame of the job's topics."""
        job = self.job
        names = ",".join(job.topics) or None
        return kafka_stream(
            self.spark, job.bootstrap_servers, self.options, topics=names, pattern=job.pattern
        )


LookAtTarget = Callable[[Mapping[str, int]], None]
"""Called with each source topic's number of partitions. Raises NotStarted if the target lacks them."""


@contextmanager
def open_source(
    name: str,
    job: StreamJob,
    check: Callable[[], None],
    *,
    fail_on_loss: bool = True,
    look_at_target: LookAtTarget | None = None,
) -> Iterator[Source]:
    """Check the arguments, the job's directory (with `check()`) and the clusters. Then start Spark, and yield
    the source of the job.

    The job's directory is locked until the context ends. Raises NotStarted if a check fails.
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
    spark = create_session(f"kafka-compat {name}", job.spark)
    view = look(spark, properties, topics=job.topics, pattern=job.pattern)
    if not view.topic_ids:
        raise NotStarted(f"No topic on {job.bootstrap_servers} matches {job.pattern}.")
    lock.hold(spark._jvm)
    try:
        yield Source(job, spark, view, options)
    finally:
        lock.release()


Process = Callable[[Any, int], dict[str, Any]]
"""Called with a batch's rows and ID. Returns the data for the batch's commit entry, including the number of
`rows`.
"""


def run_stream(
    name: str,
    job: StreamJob,
    folder: JobFolder,
    process: Callable[[Any, str], Process],
    committed: Callable[[], None] | None = None,
    look_at_target: LookAtTarget | None = None,
) -> StreamRun:
    """Process the job's topics, starting where the checkpoint ends. Raises PipelineError if this fails.

    `process(spark, job_id)` is called once, and the returned function at least once for each uncommitted
    batch, always with the same offsets. `committed()` is called after each commit, unless a crash prevents
    this. `look_at_target` is called before Spark starts. The job's directory is locked during the run.
    """
    with open_source(name, job, folder.check, look_at_target=look_at_target) as source:
        view = source.view
        work = process(source.spark, folder.open())
        last = folder.last()
        topic_ids = last[1]["topic_ids"] if last else {}
        lost = lost_since(view, next_offsets(folder.checkpoint), topic_ids)
        if lost:
            raise RecordsLost("\n".join(lost), "Start in a new directory with the topic as it is now.")

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
    return sum(
        max(0, end - done.get(topic, {}).get(partition, earliest[topic][partition]))
        for topic, partitions in latest.items()
        for partition, end in partitions.items()
    )
