"""Write rows exactly once, on Spark's executors, with pyarrow and confluent-kafka (see exact_sink)."""

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_compat.pipelines.errors import JobFailed

COLUMNS = (
    "to_topic",
    "to_partition",
    "key",
    "value",
    "headers",
    "timestamp",
    "topic_from",
    "partition_from",
    "offset_from",
)
"""The target topic and partition, the record, and its origin, which must be unique in the batch. If the
timestamp is null, the producer sets the current time. Rows without to_topic are only counted.
"""

DONE_SCHEMA = "written long, found long, left_out long"
JOB_HEADER = "kafka-compat-job"
ORIGIN_HEADER = "kafka-compat-origin"
"""Header with the record's origin as topic/partition/offset. The last header with this name counts."""

LOCK_WAIT_S = 60.0
READ_BACK_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A target: librdkafka `properties`, end offsets before the batch (`begun`), and the lock directory."""

    properties: dict[str, str]
    job_id: str
    begun: dict[str, dict[str, int]]
    locks: str


class _Partition:
    """A locked target partition, and the origins of the records already written to it."""

    def __init__(self, plan: Plan, topic: str, partition: int) -> None:
        self._lock = _locked(os.path.join(plan.locks, f"{topic}-{partition}"))
        start = plan.begun.get(topic, {}).get(str(partition), 0)
        self.there = read_back(plan, topic, partition, start)

    def close(self) -> None:
        os.close(self._lock)


def write_rows(batches: Iterator[Any], plan: Plan) -> Iterator[Any]:
    """Write record batches of COLUMNS, sorted by target partition. Yields one row of DONE_SCHEMA."""
    from confluent_kafka import Producer

    defaults = {"log_level": "2", "linger.ms": "20", "compression.type": "lz4"}
    own = {"enable.idempotence": "true", "acks": "all"}
    producer = Producer({**defaults, **plan.properties, **own})
    failed: list[str] = []
    target: _Partition | None = None
    owner = ("", -1)
    written = found = left_out = 0
    job_header = (JOB_HEADER, plan.job_id.encode())

    def acknowledged(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error.str())

    try:
        for batch in batches:
            stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
            columns = [batch.column(name).to_pylist() for name in COLUMNS if name != "timestamp"]
            for stamp, to, part, key, value, headers, *origin in zip(stamps, *columns, strict=True):
                if to is None:
                    left_out += 1
                    continue
                if (to, part) != owner:
                    _finish(producer, failed)
                    if target is not None:
                        target.close()
                    owner, target = (to, part), _Partition(plan, to, part)
                name = origin_name(*origin)
                if target is not None and name in target.there:
                    found += 1
                    continue
                given = [(header["key"], header["value"]) for header in headers or []]
                marked = [*given, job_header, (ORIGIN_HEADER, name.encode())]
                # Replace a missing timestamp with 0: librdkafka then sets the current time.
                millis = 0 if stamp is None else stamp // 1000
                record = {"partition": part, "key": key, "value": value, "headers": marked}
                _produce(producer, {"topic": to, "timestamp": millis, **record}, acknowledged, failed)
                written += 1
        _finish(producer, failed)
    finally:
        if target is not None:
            target.close()
    yield pa.RecordBatch.from_pydict({"written": [written], "found": [found], "left_out": [left_out]})


def origin_name(topic: str, partition: int, offset: int) -> str:
    """Return the value of ORIGIN_HEADER for a record."""
    return f"{topic}/{partition}/{offset}"


def read_back(plan: Plan, topic: str, partition: int, start: int) -> set[str]:
    """Return the origins of the job's records in the partition, starting at offset `start`."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings = {"log_level": "2", "group.id": "kafka-compat-read-back", "enable.auto.commit": "false"}
    own = {
        "auto.offset.reset": "error",
        "enable.partition.eof": "true",
        "isolation.level": "read_uncommitted",
    }
    consumer = Consumer({**plan.properties, **settings, **own})
    origins: set[str] = set()
    job = plan.job_id.encode()
    try:
        where = TopicPartition(topic, partition, start)
        low, end = consumer.get_watermark_offsets(where, 20, cached=False)
        if max(low, start) >= end:
            return origins
        where.offset = max(low, start)
        consumer.assign([where])
        deadline = time.monotonic() + READ_BACK_TIMEOUT_S
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    deadline = time.monotonic() + READ_BACK_TIMEOUT_S
                    headers: dict[str, Any] = dict(message.headers() or [])
                    if headers.get(JOB_HEADER) == job:
                        origins.add(headers[ORIGIN_HEADER].decode())
                elif error.code() == KafkaError._PARTITION_EOF:
                    return origins
                else:
                    raise JobFailed(f"Reading back {topic}-{partition}: {error.str()}")
        raise JobFailed(f"Reading back {topic}-{partition} made no progress for {READ_BACK_TIMEOUT_S:.0f} s.")
    finally:
        consumer.close()


def _produce(producer: Any, record: dict[str, Any], acknowledged: Any, failed: list[str]) -> None:
    while True:
        try:
            producer.produce(**record, on_delivery=acknowledged)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
        _raise(failed)


def _finish(producer: Any, failed: list[str]) -> None:
    while producer.flush(1.0):
        _raise(failed)
    _raise(failed)


def _raise(failed: list[str]) -> None:
    if failed:
        raise JobFailed(f"{len(failed)} records were not written: {failed[0]}")


def _locked(path: str) -> int:
    """Lock the file, after a short wait for an earlier writer to exit. Closing the descriptor unlocks it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise JobFailed(f"Another writer holds {path}.") from None
            time.sleep(0.1)
