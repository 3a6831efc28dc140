"""Idempotent producers that record acknowledgements, and a check of a log against them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from tests.support.client_security import for_librdkafka

PARTITIONS = 3
_BURST = 20
_PAUSE_S = 0.01
_UNACKNOWLEDGED_MOST = 2000
_FINISH_S = 10
"""A load finishes well within this time if its broker is running. Afterwards, records in flight are dropped.
"""

Place = tuple[int, int]
"""(partition, offset)"""


def value_of(number: int) -> bytes:
    """Return the value of record `number`, which identifies the record and varies in length."""
    return b"%d:" % number + b"x" * (number * 7919 % 300)


class Producer(Protocol):
    """An idempotent producer of a client library with acks=all.

    `send` calls `done` with the record's place once it is acknowledged, or with None if the client gives up.
    """

    def send(self, partition: int, value: bytes, done: Callable[[Place | None], None]) -> None: ...

    def serve_callbacks(self) -> None:
        """Run pending callbacks, if the client does not run them itself."""

    def finish(self) -> None:
        """Wait until every record sent is acknowledged or given up."""

    def drop(self) -> None:
        """Drop the records in flight, and close the client."""


class ConfluentProducer:
    """The producer of confluent-kafka (librdkafka)."""

    def __init__(self, address: str, topic: str) -> None:
        from confluent_kafka import Producer as Client

        self._topic = topic
        self._client = Client(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )

    def send(self, partition: int, value: bytes, done: Callable[[Place | None], None]) -> None:
        def delivered(error: Any, message: Any) -> None:
            done(None if error is not None else (message.partition(), message.offset()))

        self._client.produce(self._topic, value, partition=partition, on_delivery=delivered)

    def serve_callbacks(self) -> None:
        self._client.poll(0)

    def finish(self) -> None:
        left = self._client.flush(120)
        assert left == 0, f"{left} records neither acknowledged nor given up within 120 s"

    def drop(self) -> None:
        self._client.purge()


class KafkaPythonProducer:
    """The producer of kafka-python."""

    def __init__(self, address: str, topic: str) -> None:
        from kafka import KafkaProducer

        self._topic = topic
        self._client = KafkaProducer(
            bootstrap_servers=address,
            enable_idempotence=True,
            acks="all",
            linger_ms=2,
            delivery_timeout_ms=120_000,
            request_timeout_ms=10_000,
            retry_backoff_ms=20,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )

    def send(self, partition: int, value: bytes, done: Callable[[Place | None], None]) -> None:
        future = self._client.send(self._topic, value, partition=partition)
        future.add_callback(lambda found: done((found.partition, found.offset)))
        future.add_errback(lambda _error: done(None))

    def serve_callbacks(self) -> None:
        """Does nothing, because kafka-python runs callbacks in its own thread."""

    def finish(self) -> None:
        self._client.flush(120)
        self._client.close(30)

    def drop(self) -> None:
        # close() would wait for the records in flight, and after its timeout leave everything open.
        self._client._sender.force_close()


class Load(threading.Thread):
    """Sends numbered records at a steady pace until `stop_sending`, and records the place of each
    acknowledged record.

    Use it as a context manager: it starts sending when the block is entered, and closes its client at the
    end.
    """

    def __init__(self, producer: Producer) -> None:
        super().__init__(name="load", daemon=True)
        self.sent = 0
        self.acknowledged: dict[int, Place] = {}
        self.given_up: set[int] = set()
        self._producer = producer
        self._stopping = threading.Event()
        self._news = threading.Condition()
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join(_FINISH_S)
        if self.is_alive() or self._failure is not None:
            self._producer.drop()
            self.join(60)

    def run(self) -> None:
        try:
            while not self._stopping.wait(_PAUSE_S):
                self._producer.serve_callbacks()
                if self.sent - len(self.acknowledged) - len(self.given_up) < _UNACKNOWLEDGED_MOST:
                    for _ in range(_BURST):
                        self._send_next()
            self._producer.finish()
        except BaseException as failure:
            self._failure = failure

    def wait_for_acknowledgement(self, timeout_s: float = 60) -> None:
        """Wait until a record is acknowledged after this call."""
        before = len(self.acknowledged)
        with self._news:
            came = self._news.wait_for(lambda: len(self.acknowledged) > before, timeout_s)
        assert came, f"nothing acknowledged for {timeout_s} s ({self._failure or 'the client waits'})"

    def stop_sending(self) -> None:
        """Stop, and wait until all records sent are acknowledged or given up."""
        self._stopping.set()
        self.join(150)
        if self._failure is not None:
            raise self._failure
        assert not self.is_alive(), "the producer did not finish"

    def _send_next(self) -> None:
        number = self.sent
        self.sent += 1

        def done(place: Place | None) -> None:
            if place is None:
                self.given_up.add(number)
                return
            self.acknowledged[number] = place
            with self._news:
                self._news.notify_all()

        self._producer.send(number % PARTITIONS, value_of(number), done)


@dataclass(slots=True)
class Findings:
    """Differences between a log and its producer's acknowledgements. All are empty if the log is correct."""

    lost: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    duplicated: list[int] = field(default_factory=list)
    phantom: list[Place] = field(default_factory=list)
    gaps: list[Place] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.lost or self.moved or self.duplicated or self.phantom or self.gaps)


def check(log: Mapping[Place, bytes], acknowledged: Mapping[int, Place], sent: int) -> Findings:
    """Compare a whole log with the acknowledgements.

    lost: acknowledged and missing; moved: stored at a different offset than acknowledged; duplicated: stored
    twice; phantom: never sent, or altered; gaps: offsets that are not consecutive from 0.
    """
    findings = Findings()
    places: dict[int, Place] = {}
    counts: Counter[int] = Counter()
    for place, value in log.items():
        digits = value.partition(b":")[0]
        number = int(digits) if digits.isdigit() else -1
        if not 0 <= number < sent or value != value_of(number):
            findings.phantom.append(place)
            continue
        counts[number] += 1
        places[number] = place
    findings.duplicated = [number for number, count in counts.items() if count > 1]
    for number, place in acknowledged.items():
        if number not in places:
            findings.lost.append(number)
        elif counts[number] == 1 and places[number] != place:
            findings.moved.append(number)
    for partition in range(PARTITIONS):
        offsets = sorted(offset for where, offset in log if where == partition)
        findings.gaps += [(partition, want) for want, offset in enumerate(offsets) if offset != want][:1]
    return findings


def read_everything(address: str, topic: str, partitions: int = PARTITIONS) -> dict[Place, bytes]:
    """Read the whole topic from offset 0 to its end offsets with a new consumer."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": address, "group.id": "durability", "enable.auto.commit": False}
    consumer = Consumer({**settings, **for_librdkafka()})
    assignment = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
    ends = {place.partition: _end(consumer, place) for place in assignment}
    consumer.assign(assignment)
    log: dict[Place, bytes] = {}
    waiting = {partition for partition, end in ends.items() if end > 0}
    deadline = time.monotonic() + 120
    while waiting:
        assert time.monotonic() < deadline, f"partitions {waiting} were not read to their end offsets {ends}"
        for message in consumer.consume(1000, timeout=0.2):
            assert message.error() is None, message.error()
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None and offset is not None and value is not None
            log[partition, offset] = value
            if offset >= ends[partition] - 1:
                waiting.discard(partition)
    consumer.close()
    return log


_NOT_YET = (
    "OFFSET_NOT_AVAILABLE",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "_UNKNOWN_PARTITION",
)
"""Errors that librdkafka does not retry here. A new leader does not know the end offset until its followers
have fetched (KIP-207), and brokers that have just started do not know the leaders."""


def _end(consumer: Any, place: Any) -> int:
    """Return the end offset of a partition."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + 30
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=30)[1])
        except KafkaException as error:
            if error.args[0].name() not in _NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # polling interval
            # librdkafka caches metadata for minutes, including missing leaders, unless it is refreshed.
            consumer.list_topics(timeout=30)
