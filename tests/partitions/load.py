"""Producers that record every attempt with its time, to determine which records were acknowledged while a
broker was isolated.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.wire import Closed, Connection
from tests.partitions.network import Network

LEADER_ONLY, ALL_IN_SYNC = 1, -1
PAUSE_S = 0.02
ANSWER_S = 1.0
"""timeout.ms of the requests: the time that a broker waits for the in-sync replicas."""
_SKIPPED_ROUNDS = 10


class Attempt(NamedTuple):
    """A record that was sent, and the result. Times are monotonic seconds."""

    topic: str
    partition: int
    value: bytes
    sent_s: float
    answered_s: float
    error: ErrorCode
    offset: int
    """-1 if unknown."""


class DirectProducer:
    """Sends to one broker, whether or not it is the leader, and never retries."""

    def __init__(self, network: Network, host: str, address: str, topics: tuple[str, ...], acks: int) -> None:
        self.acks = acks
        self.attempts: list[Attempt] = []
        self._name = f"{host}/{address}/{acks}"
        self._address = address
        self._places = [(topic, partition) for topic in topics for partition in range(3)]
        self._pauses = dict.fromkeys(self._places, 0)
        self._stopping = threading.Event()
        self._written = 0
        self._thread = network.thread(host, self._run)
        self._thread.start()

    def abandon(self) -> None:
        """Stop sending, without waiting."""
        self._stopping.set()

    def stop(self) -> None:
        self.abandon()
        self._thread.join(30)
        assert not self._thread.is_alive(), f"{self._name} did not stop"

    def _run(self) -> None:
        connection: Connection | None = None
        while not self._stopping.wait(PAUSE_S):
            try:
                connection = connection or Connection(self._address)
                self._round(connection)
            except (OSError, Closed):
                connection = None

    def _round(self, connection: Connection) -> None:
        places = []
        for place in self._places:
            # Partitions that the broker does not lead are only tried in some rounds.
            self._pauses[place] -= self._pauses[place] > 0
            if not self._pauses[place]:
                places.append(place)
        if not places:
            return
        values = {place: self._value() for place in places}
        topics: dict[str, list[dict[str, Any]]] = {}
        for topic, partition in places:
            batch = build_batch([Record(timestamp=int(time.time() * 1000), value=values[topic, partition])])
            topics.setdefault(topic, []).append({"index": partition, "records": batch})
        request = {
            "acks": self.acks,
            "timeout_ms": int(ANSWER_S * 1000),
            "topic_data": [{"name": topic, "partition_data": data} for topic, data in topics.items()],
        }
        sent_s = time.monotonic()
        answer = connection.ask(ApiKey.PRODUCE, 9, request)
        answered_s = time.monotonic()
        for topic_answer in answer["responses"]:
            for item in topic_answer["partition_responses"]:
                place = (topic_answer["name"], item["index"])
                error = ErrorCode(item["error_code"])
                if error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    self._pauses[place] = _SKIPPED_ROUNDS
                attempt = Attempt(*place, values[place], sent_s, answered_s, error, item["base_offset"])
                self.attempts.append(attempt)

    def _value(self) -> bytes:
        self._written += 1
        return f"{self._name}/{self._written}".encode()


class IdempotentProducer:
    """A librdkafka producer with acks=all and idempotence, which retries until the result is known."""

    def __init__(self, network: Network, host: str, addresses: str, topic: str) -> None:
        self.attempts: list[Attempt] = []
        self._name = f"{host}/idempotent"
        self._addresses = addresses
        self._topic = topic
        self._stopping = threading.Event()
        self.sent = 0
        self._thread = network.thread(host, self._run)
        self._thread.start()

    def abandon(self) -> None:
        """Stop sending, without waiting."""
        self._stopping.set()

    def stop(self) -> None:
        """Wait until every record is delivered or given up."""
        self.abandon()
        self._thread.join(70)
        assert not self._thread.is_alive(), f"{self._name} did not stop"

    def _run(self) -> None:
        from confluent_kafka import Producer

        client = Producer(
            {
                "bootstrap.servers": self._addresses,
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": 60_000,
                "socket.timeout.ms": 3_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2_000,
                "log_level": 2,
            }
        )
        while not self._stopping.wait(PAUSE_S):
            for partition in range(3):
                self._send(client, partition)
            client.poll(0)
        client.flush(60)

    def _send(self, client: Any, partition: int) -> None:
        self.sent += 1
        value = f"{self._name}/{self.sent}".encode()
        sent_s = time.monotonic()

        def delivered(error: Any, message: Any) -> None:
            code = ErrorCode.NONE if error is None else ErrorCode.UNKNOWN_SERVER_ERROR
            offset = message.offset() if error is None else None
            self.attempts.append(
                Attempt(
                    self._topic,
                    partition,
                    value,
                    sent_s,
                    time.monotonic(),
                    code,
                    -1 if offset is None else offset,
                )
            )

        client.produce(self._topic, value, partition=partition, on_delivery=delivered)
