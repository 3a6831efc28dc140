"""Write batches of rows to Kafka exactly once, without transactions, despite crashes.

Spark's Kafka sink may write a batch twice after a failure, and cannot set timestamps. This sink sets
timestamps, and avoids duplicates by reading the target. The rules:

1. To recognize a record in a later attempt, two of its headers contain the job's ID and the record's origin.
2. Before a batch writes anything, the ends of the target partitions are recorded (JobFolder.begin).
3. One task owns a target partition and holds a file lock in the job's directory while it runs. It first
   reads the partition from the recorded end to the current end, and skips rows that already exist.
4. It writes the other rows in order with an idempotent producer, so that a failed attempt has written a
   prefix of its rows, without gaps or duplicates.
5. The batch is committed when all in-sync replicas have acknowledged all records.

The lock excludes concurrent attempts. After a writer has died, Spark takes some seconds to restart. During
this time, the broker must process all data that it received from the dead writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kafka_compat.pipelines import exact_sink_writer
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.executors import send_code_to_executors
from kafka_compat.pipelines.first_look import check_partitions, first_look_at_target
from kafka_compat.pipelines.kafka_options import (
    client_properties,
    named_values,
    producer_properties,
    source_options,
)
from kafka_compat.pipelines.stream_job import StreamJob

Ends = dict[str, dict[str, int]]
"""The end offset for each topic and partition (a string, for JSON)."""

REQUEST_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Target:
    """The target cluster. `properties` contains librdkafka properties, including bootstrap.servers."""

    properties: Mapping[str, str]

    @property
    def address(self) -> str:
        return self.properties["bootstrap.servers"]

    def look(self, wanted: Mapping[str, int], *, create: bool) -> None:
        """Check the target before Spark starts. Raises NotStarted if `provide` would fail."""
        if first_look_at_target(self.properties, wanted, create=create) is None and not create:
            self.require(wanted)

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of each topic. Raises NotStarted if no broker responds."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            topics = AdminClient(dict(self.properties)).list_topics(timeout=REQUEST_TIMEOUT_S).topics
        except KafkaException as error:
            raise NotStarted(
                f"The cluster at {self.address} does not respond: {error.args[0].str()}",
                "Is the broker running, and is the address correct?",
            ) from None
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def require(self, wanted: Mapping[str, int]) -> None:
        """Raise NotStarted unless each topic exists with at least the number of partitions in `wanted`."""
        check_partitions(self.address, wanted, self.partitions())

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic without time-based retention, unless it exists. Raises NotStarted if this fails."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        new = NewTopic(topic, partitions, config={"retention.ms": "-1"})
        admin = AdminClient(dict(self.properties))
        try:
            admin.create_topics([new])[topic].result(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise NotStarted(f"{topic} cannot be created: {error.args[0].str()}") from None

    def provide(self, wanted: Mapping[str, int], *, create: bool) -> None:
        """Raise NotStarted unless the wanted partitions exist. With `create`, create them if missing."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewPartitions

        there = self.partitions() if create else dict(wanted)
        for topic, count in wanted.items():
            if topic not in there:
                self.create(topic, count)
            elif there[topic] < count:
                admin = AdminClient(dict(self.properties))
                try:
                    admin.create_partitions([NewPartitions(topic, count)])[topic].result(REQUEST_TIMEOUT_S)
                except KafkaException as error:
                    raise NotStarted(f"Cannot add partitions to {topic}: {error.args[0].str()}") from None
        self.require(wanted)

    def ends(self, topics: list[str]) -> Ends:
        """Return the end offset of each partition. Raises KafkaException if the cluster does not respond."""
        from confluent_kafka import Consumer, TopicPartition

        there = self.partitions()
        consumer = Consumer({"log_level": "2", **self.properties, "group.id": "kafka-compat-ends"})
        try:
            return {
                topic: {
                    str(partition): consumer.get_watermark_offsets(
                        TopicPartition(topic, partition), REQUEST_TIMEOUT_S, cached=False
                    )[1]
                    for partition in range(there.get(topic, 0))
                }
                for topic in topics
            }
        finally:
            consumer.close()


@dataclass(frozen=True, slots=True)
class Written:
    """Row counts for a batch: written now, written by an earlier attempt, and omitted for lack of a topic."""

    written: int
    written_before: int
    left_out: int = 0


def target_of(source: StreamJob, servers: str | None, options: Sequence[str]) -> Target:
    """Return the target cluster. If `servers` is None, it is the source cluster, with the same
    authentication. `options` contains librdkafka properties as name=value.
    """
    shared: dict[str, str] = {}
    if servers is None:
        shared = producer_properties(client_properties(source_options(source.kafka_options)))
    own = {"bootstrap.servers": servers or source.bootstrap_servers, **named_values(options)}
    return Target({**shared, **own})


def write_exactly_once(rows: Any, target: Target, job_id: str, begun: Ends, folder: Path) -> Written:
    """Write rows with the columns exact_sink_writer.COLUMNS, and return their counts.

    `begun` contains the target's end offsets when the batch began. Rows for one target partition are written
    in the order of (topic_from, partition_from, offset_from).
    """
    send_code_to_executors()
    plan = exact_sink_writer.Plan(dict(target.properties), job_id, begun, str(folder.resolve() / "_locks"))
    parts = rows.sparkSession.sparkContext.defaultParallelism
    sorted_rows = (
        rows.select(*exact_sink_writer.COLUMNS)
        .repartition(parts, "to_topic", "to_partition")
        .sortWithinPartitions("to_topic", "to_partition", "topic_from", "partition_from", "offset_from")
    )
    write = partial(exact_sink_writer.write_rows, plan=plan)
    done = sorted_rows.mapInArrow(write, exact_sink_writer.DONE_SCHEMA).collect()
    return Written(*(sum(row[name] for row in done) for name in ("written", "found", "left_out")))
