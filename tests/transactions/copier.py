"""`python -m tests.transactions.copier CLIENT ADDRESS TOTAL`: copies TOTAL records from `source` to `target`
with exactly-once semantics, in transactions of some records each, every seventh of which is aborted. It may
be killed and started again at any time, and continues after the last committed transaction.

An alarm ends a process that makes no progress: when a broker is killed and restarts, kafka-python 3.0.12 may
block forever in a transactional call, because it forgot a request on a closed connection.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from tests.support.client_security import for_kafka_python, for_librdkafka

GROUP = "copiers"
TRANSACTIONAL_ID = "copier"
SIZE = 50
ABORT_EVERY = 7
PATIENCE_S = 12
ALARM_S = 20


class Client(Protocol):
    """A consumer and a producer. Failed calls raise."""

    def position(self) -> int:
        """Return the group's offset in `source`, and let `take` continue from there."""

    def rewind(self, position: int) -> None:
        """Let `take` continue from this offset."""

    def take(self) -> list[bytes]:
        """Return the values of up to SIZE records, or an empty list if none are available."""

    def copy(self, values: list[bytes], position: int, commit: bool) -> None:
        """Run one transaction with these records and this offset of the group."""


class Librdkafka:
    def __init__(self, address: str) -> None:
        from confluent_kafka import Consumer, Producer, TopicPartition

        self._partition = TopicPartition
        settings = {
            "bootstrap.servers": address,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
            # Otherwise, librdkafka 2.16 drops all brokers if none is alive, and waits forever for the group's
            # coordinator on a dropped broker. The same happens with Apache Kafka 3.9.1.
            "metadata.recovery.strategy": "none",
            **for_librdkafka(),
        }
        self._producer = Producer(
            {
                **settings,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": 20_000,
                "linger.ms": 0,
            }
        )
        self._producer.init_transactions(PATIENCE_S)
        self._consumer = Consumer(
            {
                **settings,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )

    def position(self) -> int:
        (found,) = self._consumer.committed([self._partition("source", 0)], PATIENCE_S)
        position = max(found.offset, 0)
        self._consumer.assign([self._partition("source", 0, position)])
        return position

    def rewind(self, position: int) -> None:
        self._consumer.seek(self._partition("source", 0, position))

    def take(self) -> list[bytes]:
        values = []
        for message in self._consumer.consume(SIZE, 1.0):
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            elif not error.retriable():
                raise RuntimeError(error.str())
        return values

    def copy(self, values: list[bytes], position: int, commit: bool) -> None:
        producer = self._producer
        producer.begin_transaction()
        for value in values:
            producer.produce("target", value, partition=0)
        offsets = [self._partition("source", 0, position)]
        producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), PATIENCE_S)
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)


class KafkaPython:
    def __init__(self, address: str) -> None:
        from kafka import KafkaConsumer, KafkaProducer
        from kafka.structs import OffsetAndMetadata, TopicPartition

        self._offset = OffsetAndMetadata
        self._source = TopicPartition("source", 0)
        reached: dict[str, Any] = {"bootstrap_servers": address.split(","), **for_kafka_python()}
        self._producer = KafkaProducer(
            **reached, transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=20_000
        )
        self._producer.init_transactions()
        self._consumer = KafkaConsumer(
            **reached,
            group_id=GROUP,
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        self._consumer.assign([self._source])

    def position(self) -> int:
        position = self._consumer.committed(self._source) or 0
        self.rewind(position)
        return position

    def rewind(self, position: int) -> None:
        self._consumer.seek(self._source, position)

    def take(self) -> list[bytes]:
        records = self._consumer.poll(timeout_ms=1000, max_records=SIZE)
        return [record.value for record in records.get(self._source, ())]

    def copy(self, values: list[bytes], position: int, commit: bool) -> None:
        producer = self._producer
        producer.begin_transaction()
        for value in values:
            producer.send("target", value, partition=0)
        offset = self._offset(position, "", -1)
        producer.send_offsets_to_transaction({self._source: offset}, self._consumer.group_metadata())
        if commit:
            producer.commit_transaction()
        else:
            producer.flush(PATIENCE_S)
            producer.abort_transaction()


CLIENTS: dict[str, Callable[[str], Client]] = {"librdkafka": Librdkafka, "kafka-python": KafkaPython}


def copy_all(new_client: Callable[[str], Client], address: str, total: int) -> None:
    """Copy all records, replacing failed clients. The source's offsets equal the numbers of its records."""
    transactions = 0
    end = time.monotonic() + 600
    while time.monotonic() < end:
        signal.alarm(ALARM_S)
        try:
            client = new_client(address)
            position = client.position()
            while position < total:
                values = client.take()
                if not values:
                    continue
                signal.alarm(ALARM_S)
                transactions += 1
                commit = transactions % ABORT_EVERY != 0
                client.copy(values, position + len(values), commit)
                if commit:
                    position += len(values)
                else:
                    client.rewind(position)
            return
        except Exception as error:
            # After any error, a new client repeats the incomplete transaction.
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            time.sleep(0.2)  # retry interval
    raise TimeoutError


if __name__ == "__main__":
    _, name, brokers, count = sys.argv
    copy_all(CLIENTS[name], brokers, int(count))
