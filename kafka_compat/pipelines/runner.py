"""Runs one Spark streaming query to its end; every job shares this."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.cluster import cause
from kafka_compat.pipelines.errors import JobFailed, PipelineError, RecordsLost
from kafka_compat.pipelines.stop_signals import stop_signals

POLL_S = 0.5


def kafka_stream(
    spark: Any, bootstrap_servers: str, options: Mapping[str, str], *, topics: str | None, pattern: str | None
) -> Any:
    """A streaming DataFrame of Spark's Kafka source, with headers, from the topics' beginnings by default.

    kafka.max.poll.records is raised from 500, since the source asks for the partition's ends at every poll.
    """
    # Spark takes a topic when the pattern is found anywhere in its name.
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
    """Hand every micro-batch of `stream` to `process(rows, batch_id)`, in order and at least once.

    Without an interval: all that is available now, then return True. With one: a batch at every interval,
    until SIGINT or SIGTERM. Returns False when a signal ended it. Raises what `process` raised, JobFailed
    when Spark or Kafka failed, RecordsLost when Kafka no longer has what the checkpoint asks for.
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
    """The error that a user can act on: what the job itself raised, or Spark's innermost reason."""
    for failure in failures:
        if isinstance(failure, PipelineError):
            return failure
    reason = cause(failures[0] if failures else error)
    if "data may have been missed" in reason or "KAFKA_DATA_LOSS" in str(error):
        return RecordsLost(
            f"Records are gone from the topic that were to be read: {reason}",
            "Retention overtook the job, or the topic was deleted. --accept-loss goes on, counting gaps.",
        )
    return JobFailed(
        reason, "What was finished is kept: run the same command again to go on. --verbose says more."
    )


def _stop(query: Any) -> None:
    try:
        query.stop()
    except Exception as error:
        # The query has its own error by now, or the JVM is gone; either is reported by the caller.
        del error
