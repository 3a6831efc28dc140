"""Job `lag`: commit a streaming query's position to a consumer group, so that Kafka's tools show Spark's lag.

Spark keeps its positions in its checkpoint, and does not commit them to Kafka. To commit them in a job:

    from kafka_compat.pipelines.lag import show_lag
    show_lag(spark, "127.0.0.1:9092", group="billing")

From outside of a job, `kafka-compat pipeline lag` reads the checkpoint. The group is informative: Spark never
resumes from the group's offsets.
"""

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.checkpoint import Offsets, committed_offsets
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.first_look import first_look
from kafka_compat.pipelines.kafka_options import java_names, named_values
from kafka_compat.pipelines.progress import text_table
from kafka_compat.pipelines.stream_job import stop_signals

ANSWER_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class LagJob:
    """Parameters of a lag job, which commits a query's offsets to `group` every `interval_s` seconds, or once
    if `interval_s` is None. `checkpoint` is the query's checkpoint.
    """

    bootstrap_servers: str
    checkpoint: Path
    group: str
    kafka_options: Sequence[str] = ()
    interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class LagReport:
    """Report on a lag job: the last committed offsets, and the partitions' end offsets."""

    group: str
    committed: Offsets
    ends: Offsets
    exit_code: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dict, with one entry per partition."""
        return {
            "job": "lag",
            "group": self.group,
            "partitions": [
                {
                    "topic": topic,
                    "partition": partition,
                    "committed_offset": offset,
                    "end_offset": self.ends[topic][partition],
                    "lag": max(0, self.ends[topic][partition] - offset),
                }
                for topic, partitions in sorted(self.committed.items())
                for partition, offset in sorted(partitions.items())
            ],
        }

    def as_text(self) -> str:
        """Return a table in the format of kafka-consumer-groups."""
        keys = ("topic", "partition", "committed_offset", "end_offset", "lag")
        rows = [[self.group, *(str(entry[key]) for key in keys)] for entry in self.as_json()["partitions"]]
        return text_table(["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"], rows)


class GroupCommitter:
    """A client that commits a group's offsets without being a member. `properties` are librdkafka's."""

    def __init__(self, bootstrap_servers: str, group: str, properties: Mapping[str, str]) -> None:
        from confluent_kafka import Consumer

        own = {"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": "false"}
        # Suppress librdkafka's error messages, because several per second would hide the caller's message.
        self._consumer = Consumer({"log_level": "2", **properties, **own})
        self._lock = threading.Lock()

    def commit(self, offsets: Offsets) -> None:
        """Commit the offsets, and wait for the response. Raises KafkaException if the commit fails."""
        from confluent_kafka import TopicPartition

        positions = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        if positions:
            with self._lock:
                # Query metadata first, because a commit would wait a minute for an unresponsive cluster.
                self._consumer.list_topics(next(iter(offsets)), timeout=ANSWER_TIMEOUT_S)
                self._consumer.commit(offsets=positions, asynchronous=False)

    def ends(self, offsets: Offsets) -> Offsets:
        """Return the end offsets of the partitions in `offsets`. Raises KafkaException if a query fails."""
        from confluent_kafka import TopicPartition

        with self._lock:
            return {
                topic: {
                    partition: self._consumer.get_watermark_offsets(
                        TopicPartition(topic, partition), ANSWER_TIMEOUT_S, cached=False
                    )[1]
                    for partition in partitions
                }
                for topic, partitions in offsets.items()
            }

    def close(self) -> None:
        self._consumer.close()


def show_lag(
    spark: Any, bootstrap_servers: str, *, group: str | None = None, **properties: str
) -> "LagListener":
    """After each batch of a Kafka query in the session `spark`, commit the end offsets of the batch.

    If `group` is None, each query's group is `spark-NAME`, with its `queryName` or ID. `properties` are
    librdkafka's, with `_` for `.` (security_protocol="SSL"). Failed commits are logged as warnings, and never
    stop the query. To remove the returned listener, pass its `as_listener()` to
    `spark.streams.removeListener`.
    """
    named = {name.replace("_", "."): value for name, value in properties.items()}
    listener = LagListener(bootstrap_servers, group, named)
    spark.streams.addListener(listener.as_listener())
    return listener


class LagListener:
    """A listener for the queries of a Spark session. `as_listener()` returns Spark's listener object."""

    def __init__(self, bootstrap_servers: str, group: str | None, properties: Mapping[str, str]) -> None:
        self._servers = bootstrap_servers
        self._group = group
        self._properties = dict(properties)
        self._committers: dict[str, GroupCommitter] = {}
        self._listener: Any = None

    def as_listener(self) -> Any:
        """Return the StreamingQueryListener. All calls return the same object."""
        if self._listener is None:
            self._listener = _listener_class()(self)
        return self._listener

    def close(self) -> None:
        """Close the connections. Call this method after removing the listener."""
        for committer in self._committers.values():
            committer.close()
        self._committers.clear()

    def progressed(self, query: str, sources: Sequence[Any]) -> None:
        """Commit the offsets of a finished batch. A source has a `description` and an `endOffset` (JSON)."""
        import logging

        offsets: Offsets = {}
        for source in sources:
            if source.description.startswith("KafkaV") and source.endOffset:
                for topic, partitions in json.loads(source.endOffset).items():
                    offsets.setdefault(topic, {}).update({int(p): o for p, o in partitions.items()})
        group = self._group or f"spark-{query}"
        try:
            if group not in self._committers:
                self._committers[group] = GroupCommitter(self._servers, group, self._properties)
            self._committers[group].commit(offsets)
        except Exception as error:
            log = logging.getLogger(__name__)
            log.warning("Could not commit the offsets of query %s for group %s: %s", query, group, error)


def _listener_class() -> Any:
    """Create the listener class on demand, because only running jobs import pyspark."""
    from pyspark.sql.streaming import StreamingQueryListener

    class Listener(StreamingQueryListener):  # type: ignore[misc]
        def __init__(self, lag: LagListener) -> None:
            super().__init__()
            self._lag = lag

        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            progress = event.progress
            self._lag.progressed(progress.name or str(progress.id), progress.sources)

    return Listener


def run_lag(job: LagJob) -> LagReport:
    """Commit the checkpoint's finished offsets, once or at intervals. Raises PipelineError if this fails."""
    if not (job.checkpoint / "offsets").is_dir():
        raise NotStarted(
            f"{job.checkpoint} is not the checkpoint of a streaming query.",
            "Give the directory in the query's option checkpointLocation.",
        )
    properties = named_values(job.kafka_options)
    settings = java_names({"bootstrap.servers": job.bootstrap_servers, **properties})
    if settings is not None:
        first_look(settings, topics=committed_offsets(job.checkpoint))
    committer = GroupCommitter(job.bootstrap_servers, job.group, properties)
    committed: Offsets = {}
    try:
        with stop_signals() as stopped:
            while True:
                now = committed_offsets(job.checkpoint)
                if now != committed and _committed(committer, now, keep_going=job.interval_s is not None):
                    committed = now
                if job.interval_s is None or stopped.wait(job.interval_s):
                    return LagReport(job.group, committed, committer.ends(committed))
    except Exception as error:
        raise JobFailed(
            f"{job.bootstrap_servers}: {error}", "Is the broker running, and is the group without members?"
        ) from None
    finally:
        committer.close()


def _committed(committer: GroupCommitter, offsets: Offsets, *, keep_going: bool) -> bool:
    """Commit the offsets. With `keep_going`, print an error and return False instead of raising it."""
    try:
        committer.commit(offsets)
    except Exception as error:
        if not keep_going:
            raise
        print(f"lag: could not commit, retrying: {error}", file=sys.stderr, flush=True)
        return False
    return True
