"""Idempotent producers that remember what was acknowledged, and the check of what a log holds afterwards."""

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
"""A load whose broker is there has finished long before; else what is under way is dropped."""

Place = tuple[int, int]
"""(partition, offset)"""


def value_of(number: int) -> bytes:
    """The value of the record with that number: it says which one it is, and its length varies."""
    return b"%d:" % number + b"x" * (number * 7919 % 300)


class Producer(Protocol):
    """A client library's idempotent acks=all producer.

    `send` calls back with the record's place once it is acknowledged, or with None when the client gave up.
    """

    def send(self, partition: int, value: bytes, done: Callable[[Place | None], None]) -> None: ...

    def serve_callbacks(self) -> None:
        """Call back what came in, where the client does not do that by itself."""

    def finish(self) -> None:
        """Wait until every record sent is acknowledged or given up."""

    def drop(self) -> None:
        """Forget what is under way, and close."""


class ConfluentProducer:
    """confluent-kafka (librdkafka)."""

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
    """kafka-python."""

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
        """kafka-python's own thread does it."""

    def finish(self) -> None:
        self._client.flush(120)
        self._client.close(30)

    def drop(self) -> None:
        # close() waits for what is under way before it closes anything, and gives up with all of it open.
        self._client._sender.force_close()


class Load(threading.Thread):
    """Sends numbered records at a steady pace until `stop_sending`, and keeps what was acknowledged where.

    A context manager: it sends from the start of the block, and its client does not outlive it.
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
        """Wait until a record is acknowledged that was not when this was called."""
        before = len(self.acknowledged)
        with self._news:
            came = self._news.wait_for(lambda: len(self.acknowledged) > before, timeout_s)
        assert came, f"nothing acknowledged for {timeout_s} s ({self._failure or 'the client waits'})"

    def stop_sending(self) -> None:
        """Stop, and wait until all that was sent is acknowledged or given up."""
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
    """What is wrong with a log, given what its producer was told. All empty is right."""

    lost: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    duplicated: list[int] = field(default_factory=list)
    phantom: list[Place] = field(default_factory=list)
    gaps: list[Place] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.lost or self.moved or self.duplicated or self.phantom or self.gaps)


def check(log: Mapping[Place, bytes], acknowledged: Mapping[int, Place], sent: int) -> Findings:
    """Compare a whole log with what was acknowledged.

    lost: acknowledged and not there; moved: there, but not at the offset of the acknowledgement;
    duplicated: there twice; phantom: never sent, or altered; gaps: offsets not following each other from 0.
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
    """The whole topic from its start to its end offsets, by a consumer that never saw it before."""
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
        assert time.monotonic() < deadline, f"partitions {waiting} are not read to their ends {ends}"
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
"""A leader that has just begun does not know the end before its followers have come (KIP-207), and brokers
that have just started not yet who leads. librdkafka does not ask again by itself."""


def _end(consumer: Any, place: Any) -> int:
    """The end of a partition."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + 30
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=30)[1])
        except KafkaException as error:
            if error.args[0].name() not in _NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # interval of polling
            # What it once heard, such as that nobody leads, it believes for minutes unless it is told to ask.
            consumer.list_topics(timeout=30)
