"""Transactional guarantees for applications that use librdkafka, with our broker and Apache Kafka, and the
state after a kill -9 during a transaction.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, TopicPartition

from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, StartBroker
from tests.transactions import programs
from tests.transactions.programs import PATIENCE_S, create_topic, read_all, transactional_producer, write


@pytest.fixture(params=campaign.sides())
def address(request: pytest.FixtureRequest) -> str:
    name = "shared_broker" if request.param == "ours" else "genuine"
    server: KafkaCompatBroker | GenuineKafka = request.getfixturevalue(name)
    return server.address


@pytest.fixture
def new_topic(address: str) -> Callable[[], str]:
    def make() -> str:
        name = f"txn-{secrets.token_hex(4)}"
        create_topic(address, name)
        return name

    return make


def new_id() -> str:
    return f"id-{secrets.token_hex(4)}"


def test_read_committed_consumers_see_only_committed_records(
    address: str, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    producer = transactional_producer(address, new_id())
    for round_number, outcome in enumerate("CACAAC"):
        producer.begin_transaction()
        write(producer, topic, [f"{outcome}{round_number}-{index}" for index in range(5)])
        producer.flush(PATIENCE_S)
        if outcome == "C":
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    write(producer, topic, ["open"])
    producer.flush(PATIENCE_S)
    assert read_all(address, topic) == [f"C{number}-{index}" for number in (0, 2, 5) for index in range(5)]
    assert len(read_all(address, topic, "read_uncommitted")) == 31
    producer.abort_transaction(PATIENCE_S)


def test_consume_transform_produce_is_exactly_once(address: str, new_topic: Callable[[], str]) -> None:
    source, target, group = new_topic(), new_topic(), f"group-{secrets.token_hex(4)}"
    producer = transactional_producer(address, new_id())
    producer.begin_transaction()
    write(producer, source, range(60))
    producer.commit_transaction(PATIENCE_S)
    programs.copy(address, source, target, group, new_id(), abort_every=3)
    assert read_all(address, target) == [f"{number}'" for number in range(60)]
    assert len(read_all(address, target, "read_uncommitted")) > 60
    assert programs.committed_offset(address, group, source) == 60


def test_a_zombie_is_fenced(address: str, new_topic: Callable[[], str]) -> None:
    topic, name = new_topic(), new_id()
    zombie = transactional_producer(address, name)
    zombie.begin_transaction()
    write(zombie, topic, ["lost"])
    zombie.flush(PATIENCE_S)
    heir = transactional_producer(address, name)
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(PATIENCE_S)
    assert fenced.value.args[0].fatal()
    heir.begin_transaction()
    write(heir, topic, ["kept"])
    heir.commit_transaction(PATIENCE_S)
    assert read_all(address, topic) == ["kept"]


def test_a_transaction_past_its_timeout_is_aborted(start_broker: StartBroker) -> None:
    broker = start_broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
    create_topic(broker.address, "topic")
    silent = transactional_producer(broker.address, "silent", transaction_timeout_ms=4000)
    silent.begin_transaction()
    write(silent, "topic", ["late"])
    silent.flush(PATIENCE_S)
    other = transactional_producer(broker.address, "other")
    other.begin_transaction()
    write(other, "topic", ["kept"])
    other.commit_transaction(PATIENCE_S)
    assert read_all(broker.address, "topic") == [], "an open transaction delays later records"
    wait_until(lambda: read_all(broker.address, "topic") == ["kept"], 20, "abort of the transaction")
    with pytest.raises(KafkaException):
        silent.commit_transaction(PATIENCE_S)


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_continues_after_a_kill(start_broker: StartBroker, committed: bool) -> None:
    broker = start_broker()
    create_topic(broker.address, "topic")
    producer = transactional_producer(broker.address, "id")
    producer.begin_transaction()
    write(producer, "topic", ["before"])
    producer.flush(PATIENCE_S)
    broker.restart(kill=True)
    write(producer, "topic", ["after"])
    producer.flush(PATIENCE_S)
    assert read_all(broker.address, "topic") == []
    if committed:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.abort_transaction(PATIENCE_S)
    assert read_all(broker.address, "topic") == (["before", "after"] if committed else [])
    broker.restart(kill=True)
    assert read_all(broker.address, "topic") == (["before", "after"] if committed else [])


def test_copying_is_exactly_once_despite_kills(start_broker: StartBroker) -> None:
    """The copier dies with each kill and is replaced: no record is lost or duplicated."""
    broker = start_broker()
    address = broker.address
    create_topic(address, "source")
    create_topic(address, "target")
    producer = transactional_producer(address, "feeder")
    producer.begin_transaction()
    write(producer, "source", range(100))
    producer.commit_transaction(PATIENCE_S)
    for life in range(3):
        copier = transactional_producer(address, "copier")
        consumer = programs.new_consumer(address, "group", session_timeout_ms=6000)
        consumer.subscribe(["source"])
        messages = programs.next_messages(consumer, 20)
        copier.begin_transaction()
        write(copier, "target", [f"{(message.value() or b'').decode()}'" for message in messages])
        last = messages[-1]
        copier.send_offsets_to_transaction(
            [TopicPartition("source", 0, (last.offset() or 0) + 1)],
            consumer.consumer_group_metadata(),
            PATIENCE_S,
        )
        if life == 1:
            copier.commit_transaction(PATIENCE_S)
        else:
            copier.flush(PATIENCE_S)
        consumer.close()
        broker.restart(kill=True)
    programs.copy(address, "source", "target", "group", "copier", abort_every=2)
    assert read_all(address, "target") == [f"{number}'" for number in range(100)]


def test_a_prepared_transaction_is_completed_after_a_kill(start_broker: StartBroker) -> None:
    """The broker is killed right after each commit: after the restart, all acknowledged transactions are
    complete, without their producers.
    """
    broker = start_broker()
    # At startup, this topic is loaded after the coordinators' topic and before `topic`.
    create_topic(broker.address, "another", 200)
    create_topic(broker.address, "topic", 3)
    expected = []
    for life in range(3):
        producer = transactional_producer(broker.address, f"id-{life}")
        producer.begin_transaction()
        for partition in range(3):
            write(producer, "topic", [f"{life}-{partition}"], partition)
            expected.append(f"{life}-{partition}")
        producer.commit_transaction(PATIENCE_S)
        broker.restart(kill=True)
        end = time.monotonic() + PATIENCE_S
        while sorted(read_all(broker.address, "topic", partitions=3)) != expected:
            assert time.monotonic() < end
