"""Small transactional programs, run with real clients against any broker."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.client_security import for_librdkafka

PATIENCE_S = 40


def create_topic(address: str, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": address, **for_librdkafka()})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(PATIENCE_S)


def transactional_producer(address: str, transactional_id: str, **settings: Any) -> Producer:
    """Return a producer with the transactional id. Older producers with that id are fenced."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 200,
            **for_librdkafka(),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def new_consumer(address: str, group: str, isolation: str = "read_committed", **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "reconnect.backoff.max.ms": 200,
            **for_librdkafka(),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def write(producer: Producer, topic: str, values: Iterable[object], partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, str(value).encode(), partition=partition)


def read_all(address: str, topic: str, isolation: str = "read_committed", partitions: int = 1) -> list[str]:
    """Return every value that a reader with this isolation level receives from all partitions."""
    consumer = new_consumer(address, "reader", isolation)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[str] = []
    ended = 0
    end = time.monotonic() + PATIENCE_S
    try:
        while ended < partitions:
            assert time.monotonic() < end, values
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append((message.value() or b"").decode())
            elif error.name() == "_PARTITION_EOF":
                ended += 1
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    return values


def await_markers(address: str, topic: str, partitions: int = 1) -> None:
    """Wait until no transaction is open in the topic, because markers are written after the producer gets its
    response.
    """
    readers = [
        new_consumer(address, "reader", isolation) for isolation in ("read_committed", "read_uncommitted")
    ]
    end = time.monotonic() + PATIENCE_S
    try:
        for index in range(partitions):
            partition = TopicPartition(topic, index)
            while len({reader.get_watermark_offsets(partition, PATIENCE_S)[1] for reader in readers}) > 1:
                assert time.monotonic() < end, partition
                time.sleep(0.02)  # polling interval
    finally:
        for reader in readers:
            reader.close()


def next_messages(consumer: Consumer, count: int) -> list[Message]:
    """Return up to `count` records. Fewer are returned only at the end of the partition."""
    found: list[Message] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < end, len(found)
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found.append(message)
        elif error.name() == "_PARTITION_EOF":
            break
        else:
            raise KafkaException(error)
    return found


def copy(
    address: str, source: str, target: str, group: str, transactional_id: str, *, abort_every: int = 0
) -> int:
    """Consume, transform and produce with exactly-once semantics until the end of `source`, and return the
    number of transactions.

    Every `abort_every`-th transaction is aborted, and its input is read again.
    """
    producer = transactional_producer(address, transactional_id)
    consumer = new_consumer(address, group)
    consumer.subscribe([source])
    transactions = 0
    try:
        while messages := next_messages(consumer, 10):
            transactions += 1
            producer.begin_transaction()
            write(producer, target, [(message.value() or b"").decode() + "'" for message in messages])
            last = messages[-1]
            producer.send_offsets_to_transaction(
                [TopicPartition(source, last.partition() or 0, (last.offset() or 0) + 1)],
                consumer.consumer_group_metadata(),
                PATIENCE_S,
            )
            if abort_every and transactions % abort_every == 0:
                producer.flush(PATIENCE_S)
                producer.abort_transaction(PATIENCE_S)
                first = messages[0]
                consumer.seek(TopicPartition(source, first.partition() or 0, first.offset() or 0))
            else:
                producer.commit_transaction(PATIENCE_S)
    finally:
        consumer.close()
    return transactions


def committed_offset(address: str, group: str, topic: str, partition: int = 0) -> int:
    """Return the group's committed offset, or -1001 if there is none."""
    consumer = new_consumer(address, group)
    try:
        (found,) = consumer.committed([TopicPartition(topic, partition)], PATIENCE_S)
        return int(found.offset)
    finally:
        consumer.close()
