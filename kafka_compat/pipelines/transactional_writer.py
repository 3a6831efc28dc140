"""Write one transaction for each partition of a batch, on Spark's executors, for the job `copy`.

Executors require pyarrow and confluent-kafka. The rules:

1. A task owns one slice (the rows of one source partition in one batch) and the partition's transactional ID.
   Its InitProducerId fences any other writer with that ID, and aborts that writer's open transaction.
2. The task then reads the token: the source partition's next offset, which the transactions commit to the
   job's consumer group. Rows below the token already exist in the target, and are skipped.
3. The other rows and the slice's end, as the new token, are written in one transaction: both or neither take
   effect.

A stale writer that resumes fences its successor, reads the successor's token, and cannot add duplicates: a
writer whose commit is rejected has written no visible records.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_compat.pipelines.errors import JobFailed

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
DONE_SCHEMA = "copied long, skipped long"
ANSWER_TIMEOUT_S = 60.0
COMMIT_TIMEOUT_S = 240.0
QUEUE_FULL_WAIT_S = 0.02


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of a batch, and their target. A partition's slice ends at the offset in `ends`.

    `properties` contains librdkafka properties for the target. If `to_topic` is None, the topics keep their
    names. With `same_cluster`, tokens can be stored under the source's topics, which exist in the target.
    """

    properties: dict[str, str]
    group: str
    to_topic: str | None
    same_cluster: bool
    ends: dict[str, dict[int, int]]

    def token(self, topic: str, partition: int) -> tuple[str, Any]:
        """Return the consumer group, topic and partition for which a source partition's token is committed.

        If the clusters differ, the target topic is used, because brokers reject offsets for unknown topics.
        """
        from confluent_kafka import TopicPartition

        if self.same_cluster:
            return self.group, TopicPartition(topic, partition)
        return f"{self.group}-{topic}", TopicPartition(self.to_topic or topic, partition)


def write_slice(batches: Iterator[Any], plan: Slices) -> Iterator[Any]:
    """Copy record batches with COLUMNS from one partition, in offset order. Yields one row of DONE_SCHEMA."""
    writer: _SliceWriter | None = None
    try:
        for batch in batches:
            if batch.num_rows:
                writer = writer or _SliceWriter(
                    plan, batch["topic"][0].as_py(), batch["partition"][0].as_py()
                )
                writer.write(batch)
        if writer is None:
            return
        writer.commit()
    except BaseException:
        if writer is not None:
            writer.abort()
        raise
    yield pa.RecordBatch.from_pydict({"copied": [writer.copied], "skipped": [writer.skipped]})


class _SliceWriter:
    """The transaction of one slice. It begins at the first row that is not in the target yet."""

    def __init__(self, plan: Slices, topic: str, partition: int) -> None:
        from confluent_kafka import Consumer, Producer

        self._owner = (topic, partition)
        self._to_topic = plan.to_topic or topic
        self._end = plan.ends[topic][partition]
        group, self._token = plan.token(topic, partition)
        defaults = {
            "log_level": "2",
            "linger.ms": "20",
            "compression.type": "lz4",
            "transaction.timeout.ms": "120000",
        }
        name = f"{plan.group}-{topic}-{partition}"
        self._producer = Producer({**defaults, **plan.properties, "transactional.id": name})
        own = {"group.id": group, "enable.auto.commit": "false", "isolation.level": "read_committed"}
        self._group = Consumer({"log_level": "2", **plan.properties, **own})
        self._open = False
        self.copied = 0
        self.skipped = 0
        _patiently(self._producer.init_transactions)
        self._next = committed_token(self._group, self._token)
        if self._next is None:
            raise JobFailed(
                f"Group {group} no longer has an offset for {topic}-{partition}, which shows whether this "
                "batch was copied before the last stop.",
                "Offsets expire (offsets.retention.minutes). Compare by hand, and start in a new directory.",
            )

    def write(self, batch: Any) -> None:
        """Produce the rows that are not in the target yet."""
        stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
        columns = [batch.column(name).to_pylist() for name in COLUMNS if name != "timestamp"]
        produce, to_topic, owner = self._producer.produce, self._to_topic, self._owner
        for stamp, topic, partition, offset, key, value, headers in zip(stamps, *columns, strict=True):
            if (topic, partition) != owner:
                raise JobFailed(f"Spark mixed records of {topic}-{partition} and {owner}.")
            if offset < self._next:
                self.skipped += 1
                continue
            if not self._open:
                self._producer.begin_transaction()
                self._open = True
            given = [(header["key"], header["value"]) for header in headers] if headers else None
            # Ignore delivery reports, because the commit fails if any record was rejected.
            while True:
                try:
                    produce(to_topic, value, key, partition, timestamp=stamp // 1000, headers=given)
                    break
                except BufferError:
                    self._producer.poll(QUEUE_FULL_WAIT_S)
            self.copied += 1

    def commit(self) -> None:
        """Commit the rows and the token together."""
        if not self._open:
            return
        self._token.offset = self._end
        metadata = self._group.consumer_group_metadata()
        _patiently(lambda s: self._producer.send_offsets_to_transaction([self._token], metadata, s))
        _patiently(self._producer.commit_transaction)
        self._open = False
        self._group.close()

    def abort(self) -> None:
        """Try for five seconds to abort the transaction. If this fails, the next InitProducerId aborts it."""
        from confluent_kafka import KafkaException

        if self._open:
            try:
                self._producer.abort_transaction(5)
            except KafkaException as error:
                # Ignore the error: the original error is being raised, and the transaction will time out.
                del error
        self._group.close()


def committed_token(group: Any, token: Any) -> int | None:
    """Return the group's committed offset for the token's partition, or None if there is none."""
    answer = _patiently(lambda seconds: group.committed([token], timeout=seconds))[0]
    if answer.error is not None:
        raise JobFailed(f"{token.topic}-{token.partition}: {answer.error.str()}")
    return answer.offset if answer.offset >= 0 else None


def _patiently(call: Any) -> Any:
    """Call `call(seconds)`, and retry after retriable errors. Raises KafkaException if it still fails."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + COMMIT_TIMEOUT_S
    while True:
        try:
            return call(ANSWER_TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
