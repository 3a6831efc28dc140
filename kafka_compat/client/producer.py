"""A single-threaded producer. It collects records in batches, and sends them only during method calls."""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.client.connection_settings import whole_number
from kafka_compat.client.leaders import by_leader
from kafka_compat.client.partitioner import Sticky, partition_of
from kafka_compat.client.partitions import PASSING, TopicPartition, by_topic, error_codes
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import add_sequence
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Header, Record, build_batch, encode_varint

RECORD_OVERHEAD_BYTES: Final = 21
"""Bytes that Kafka's producer estimates for a record's length, attributes, timestamp and offset."""
BATCH_OVERHEAD_BYTES: Final = 61


class Pending:
    """A batch waiting to be sent. `tags` contains the caller's tag for each record."""

    __slots__ = ("attempts", "born_s", "records", "sequence", "size_bytes", "tags")

    def __init__(self, born_s: float) -> None:
        self.born_s = born_s
        self.records: list[Record] = []
        self.tags: list[Any] = []
        self.size_bytes = BATCH_OVERHEAD_BYTES
        self.attempts = 0
        self.sequence: int | None = None
        """Sequence number of the batch's first record, or None before the batch is sent."""


class PendingBatches:
    """Batches waiting to be sent to partitions, without I/O. Times are in seconds on a monotonic clock.

    A batch is due when it is full, when its first record has waited for the linger time, or on a flush. A
    partition's batches are sent in order, one at a time.
    """

    def __init__(self, batch_bytes: int, linger_s: float) -> None:
        self._batch_bytes = batch_bytes
        self._linger_s = linger_s
        self._queues: dict[TopicPartition, deque[Pending]] = {}

    def add(self, place: TopicPartition, record: Record, tag: Any, now_s: float) -> bool:
        """Add a record, and return whether its partition has a full batch."""
        size_bytes = size_of(record.key, record.value, record.headers)
        queue = self._queues.setdefault(place, deque())
        if not queue or queue[-1].attempts or queue[-1].size_bytes + size_bytes > self._batch_bytes:
            queue.append(Pending(now_s))
        batch = queue[-1]
        batch.records.append(record)
        batch.tags.append(tag)
        batch.size_bytes += size_bytes
        return len(queue) > 1 or batch.size_bytes >= self._batch_bytes

    def due(self, now_s: float, *, all_of_them: bool = False) -> dict[TopicPartition, Pending]:
        """Return the first batch of each partition, if it is due or `all_of_them` is set."""
        return {
            place: queue[0]
            for place, queue in self._queues.items()
            if queue
            and (
                all_of_them
                or len(queue) > 1
                or queue[0].attempts
                or queue[0].size_bytes >= self._batch_bytes
                or now_s - queue[0].born_s >= self._linger_s
            )
        }

    def wait_s(self, now_s: float) -> float | None:
        """Return the time in seconds until the next batch is due, or None if there are no batches."""
        ages = [now_s - queue[0].born_s for queue in self._queues.values() if queue]
        return max(self._linger_s - max(ages), 0.0) if ages else None

    def done(self, place: TopicPartition) -> Pending:
        """Remove and return the first batch of a partition."""
        queue = self._queues[place]
        batch = queue.popleft()
        if not queue:
            del self._queues[place]
        return batch

    def __bool__(self) -> bool:
        return bool(self._queues)


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """Return an upper bound for a record's encoded size in bytes, as estimated by Kafka's producer."""
    size_bytes = RECORD_OVERHEAD_BYTES + _sized(key) + _sized(value) + len(encode_varint(len(headers)))
    for name, content in headers:
        size_bytes += _sized(name.encode()) + _sized(content)
    return size_bytes


def _sized(content: bytes | None) -> int:
    return 1 if content is None else len(encode_varint(len(content))) + len(content)


_CALL: Final = "produce"
_RETRIES_MAX: Final = 2**31 - 1
_REQUEST_BYTES_MAX: Final = 1024 * 1024
#: Errors after which a batch is retried. They include all errors in PASSING.
_AGAIN: Final = PASSING | {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
}


class RecordTooLarge(Exception):
    """Raised for a record that exceeds max.request.size."""


class NotInMetadata(TimedOut):
    """Raised if a topic is missing from the metadata for max.block.ms."""


class ProducerSettings(NamedTuple):
    """The Java producer's settings that this producer supports."""

    acks: int = -1
    compression: CompressionType = CompressionType.NONE
    batch_bytes: int = 16384
    linger_s: float = 0.0
    retries: int = _RETRIES_MAX
    retry_backoff_s: float = 0.1
    max_block_s: float = 60.0
    request_timeout_ms: int = 30_000
    request_bytes_max: int = _REQUEST_BYTES_MAX
    is_idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000


def producer_settings(given: Mapping[str, str]) -> ProducerSettings:
    """Convert a Java producer's settings. Raises ValueError, naming the setting, if a value is invalid."""
    number = partial(whole_number, given)
    acks = given.get("acks", "all").strip()
    if acks not in ("all", "-1", "0", "1"):
        raise ValueError(f"Invalid value {acks} for configuration acks: String must be one of: all, -1, 0, 1")
    codec = given.get("compression.type", "none").strip()
    if codec.upper() not in CompressionType.__members__:
        names = ", ".join(CompressionType.__members__).lower()
        text = f"Invalid value {codec} for configuration compression.type"
        raise ValueError(f"{text}: String must be one of: {names}")
    required = -1 if acks == "all" else int(acks)
    wanted = given.get("enable.idempotence")
    retries = number("retries", _RETRIES_MAX)
    transactional_id = given.get("transactional.id")
    if wanted is not None and wanted.lower() == "true" and required != -1:
        raise ValueError("enable.idempotence=true requires acks=all.")
    can = required == -1 and retries > 0 and number("max.in.flight.requests.per.connection", 5) <= 5
    return ProducerSettings(
        acks=required,
        compression=CompressionType[codec.upper()],
        batch_bytes=number("batch.size", 16384),
        linger_s=number("linger.ms", 0) / 1000,
        retries=retries,
        retry_backoff_s=number("retry.backoff.ms", 100) / 1000,
        max_block_s=number("max.block.ms", 60_000) / 1000,
        request_timeout_ms=number("request.timeout.ms", 30_000),
        request_bytes_max=number("max.request.size", _REQUEST_BYTES_MAX),
        is_idempotent=can and (wanted is None or wanted.lower() == "true"),
        transactional_id=transactional_id,
        transaction_timeout_ms=number("transaction.timeout.ms", 60_000),
    )


class Producer:
    """A blocking producer. It calls `settled(tag, error)` once per record. `error` is None on success."""

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, settled: Callable[[Any, Exception | None], None]
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._settled = settled
        self._batches = PendingBatches(settings.batch_bytes, settings.linger_s)
        self._sticky = Sticky(settings.batch_bytes, _drawn)
        self._topics: dict[str, tuple[Any, int]] = {}
        """Topic ID and number of partitions, by topic."""
        self._leaders: dict[TopicPartition, int] = {}
        self._producer_id, self._producer_epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._in_transaction: set[TopicPartition] = set()

    # --- records

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        tag: Any = None,
    ) -> None:
        """Add a record, and send due batches. Raises RecordTooLarge, NotInMetadata, KafkaError if the topic
        is invalid or unauthorized, and the same errors as `Cluster.ask`.
        """
        size_bytes = size_of(key, value, headers)
        if size_bytes + BATCH_OVERHEAD_BYTES > self._settings.request_bytes_max:
            raise RecordTooLarge(
                f"The record of {size_bytes + BATCH_OVERHEAD_BYTES} bytes exceeds max.request.size, "
                f"{self._settings.request_bytes_max}."
            )
        if topic not in self._topics:
            self._await_topic(topic)
        count = self._topics[topic][1]
        if key is not None:
            partition = partition_of(key, count)
        else:
            available = [number for number in range(count) if (topic, number) in self._leaders]
            partition = self._sticky.partition(topic, available or range(count), size_bytes)
        record = Record(timestamp=int(time.time() * 1000), key=key, value=value, headers=headers)
        if self._batches.add((topic, partition), record, tag, time.monotonic()):
            self.poll()

    def poll(self) -> None:
        """Send due batches. Raises the same errors as `Cluster.ask`."""
        self._send(self._batches.due(time.monotonic()))

    def flush(self) -> None:
        """Send all batches and wait for the responses. Raises the same errors as `Cluster.ask`."""
        while self._batches:
            self._send(self._batches.due(time.monotonic(), all_of_them=True))

    def wait_s(self) -> float | None:
        """Return the time in seconds until `poll` has work to do, or None if no work is pending."""
        return self._batches.wait_s(time.monotonic())

    # --- transactions

    def init_transactions(self) -> None:
        """Obtain the producer ID for the transactional ID. Raises the same errors as `end_transaction`."""
        self._init_producer_id()

    def end_transaction(self, *, committed: bool = True) -> None:
        """Send all batches, and commit or abort all records since the previous transaction. Raises KafkaError
        if the coordinator returns an error, and the same errors as `Cluster.ask`.
        """
        self.flush()
        if self._in_transaction:
            self._coordinate(
                ApiKey.END_TXN,
                transactional_id=self._settings.transactional_id,
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                committed=committed,
            )
            self._in_transaction.clear()

    def _add_to_transaction(self, places: set[TopicPartition]) -> None:
        from kafka_compat.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic

        self._coordinate(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            v3_and_below_transactional_id=self._settings.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic(sorted(places)).items()
            ],
        )
        self._in_transaction |= places

    def _coordinate(self, key: ApiKey, **request: Any) -> Any:
        """Send a request to the transaction coordinator. Retry while the previous transaction is ending."""
        name = self._settings.transactional_id or ""
        return self._answered(
            lambda: self._cluster.ask_coordinator(name, key, _CALL, of_transactions=True, **request)
        )

    def _answered(self, ask: Callable[[], Any]) -> Any:
        """Call `ask`, and retry transient errors. Raises KafkaError on other errors and on timeout."""
        deadline = time.monotonic() + self._settings.max_block_s
        while True:
            answer = ask()
            wrong = [code for code in error_codes(answer) if code]
            if not wrong:
                return answer
            again = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *PASSING}
            if not again.issuperset(wrong) or time.monotonic() > deadline:
                raise KafkaError(known_code(wrong[0]), "")
            time.sleep(self._settings.retry_backoff_s)

    def _init_producer_id(self) -> None:
        fields = {
            "transactional_id": self._settings.transactional_id,
            "transaction_timeout_ms": self._settings.transaction_timeout_ms,
        }
        if self._settings.transactional_id is None:
            # Retry, because a cluster that has just started cannot assign producer IDs yet.
            answer = self._answered(lambda: self._cluster.ask(ApiKey.INIT_PRODUCER_ID, _CALL, **fields))
        else:
            answer = self._coordinate(ApiKey.INIT_PRODUCER_ID, **fields)
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        for batch in self._batches.due(0.0, all_of_them=True).values():
            batch.sequence = None

    # --- sending

    def _await_topic(self, topic: str) -> None:
        deadline = time.monotonic() + self._settings.max_block_s
        waited_ms = int(self._settings.max_block_s * 1000)
        absent = NotInMetadata(f"Topic {topic} not present in metadata after {waited_ms} ms.")
        try:
            with self._cluster.within(self._settings.max_block_s):
                while not self._learn(topic):
                    if time.monotonic() + self._settings.retry_backoff_s > deadline:
                        raise absent
                    time.sleep(self._settings.retry_backoff_s)
        except TimedOut as error:
            raise absent from error

    def _learn(self, *topics: str) -> bool:
        """Request metadata with topic creation allowed. Return whether all topics are known."""
        answer = self._cluster.metadata(topics, may_create=True)
        known = 0
        for topic in answer.topics:
            if topic.error_code and topic.error_code not in PASSING:
                invalid = topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
                said = "Invalid topics" if invalid else "Not authorized to access topics"
                raise KafkaError(known_code(topic.error_code), f"{said}: [{topic.name}]")
            if topic.error_code or not topic.partitions:
                continue
            known += 1
            self._topics[topic.name] = (topic.topic_id, len(topic.partitions))
            for one in topic.partitions:
                place = (topic.name, one.partition_index)
                self._leaders.pop(place, None)
                if one.leader_id in self._cluster.nodes:
                    self._leaders[place] = one.leader_id
        return known == len(topics)

    def _send(self, due: dict[TopicPartition, Pending]) -> None:
        if not due:
            return
        if self._settings.is_idempotent and self._producer_id < 0:
            self._init_producer_id()
        if self._settings.transactional_id is not None and due.keys() - self._in_transaction:
            self._add_to_transaction(set(due.keys() - self._in_transaction))
        for node_id, topics in by_leader(self._leaders, due.keys() & self._leaders.keys()).items():
            self._send_to(node_id, topics, due)
        stuck = due.keys() - self._leaders.keys()
        if stuck:
            for place in stuck:
                self._again_or_failed(place, ErrorCode.LEADER_NOT_AVAILABLE, None)
            time.sleep(self._settings.retry_backoff_s)
            self._learn(*{topic for topic, _ in stuck})

    def _send_to(
        self, node_id: int, topics: Mapping[str, Sequence[int]], due: dict[TopicPartition, Pending]
    ) -> None:
        from kafka_compat.protocol.messages.produce import PartitionProduceData, TopicProduceData

        data = [
            TopicProduceData(
                name=topic,
                topic_id=self._topics[topic][0],
                partition_data=[
                    PartitionProduceData(index=number, records=self._encoded((topic, number), due))
                    for number in numbers
                ],
            )
            for topic, numbers in topics.items()
        ]
        request = {
            "transactional_id": self._settings.transactional_id,
            "acks": self._settings.acks,
            "timeout_ms": self._settings.request_timeout_ms,
            "topic_data": data,
        }
        if self._settings.acks == 0:
            self._cluster.tell_broker(node_id, ApiKey.PRODUCE, _CALL, **request)
            for topic, numbers in topics.items():
                for number in numbers:
                    self._finish((topic, number), None)
            return
        answer = self._cluster.ask_broker(node_id, ApiKey.PRODUCE, _CALL, **request)
        names = {topic_id: name for name, (topic_id, _) in self._topics.items()}
        failed = set()
        for topic in answer.responses:
            name = topic.name or names[topic.topic_id]
            for one in topic.partition_responses:
                if one.error_code in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    self._finish((name, one.index), None)
                else:
                    failed.add(name)
                    self._again_or_failed((name, one.index), one.error_code, one.error_message)
        if failed:
            time.sleep(self._settings.retry_backoff_s)
            self._learn(*failed)

    def _encoded(self, place: TopicPartition, due: dict[TopicPartition, Pending]) -> bytes:
        batch = due[place]
        if self._producer_id >= 0 and batch.sequence is None:
            batch.sequence = self._sequences.get(place, 0)
            self._sequences[place] = add_sequence(batch.sequence, len(batch.records))
        return build_batch(
            batch.records,
            compression=self._settings.compression,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=-1 if batch.sequence is None else batch.sequence,
            transactional=self._settings.transactional_id is not None,
        )

    def _again_or_failed(self, place: TopicPartition, code: int, message: str | None) -> None:
        batch = self._batches.due(time.monotonic(), all_of_them=True)[place]
        batch.attempts += 1
        if code not in _AGAIN or batch.attempts > self._settings.retries:
            self._finish(place, KafkaError(known_code(code), message or ""))
            if self._settings.transactional_id is None:
                # Request a new producer ID: brokers would reject the sequence numbers after the lost batch.
                self._producer_id = -1

    def _finish(self, place: TopicPartition, error: Exception | None) -> None:
        for tag in self._batches.done(place).tags:
            self._settled(tag, error)


def _drawn(choices: Sequence[int]) -> int:
    return choices[int.from_bytes(os.urandom(4), "big") % len(choices)]
