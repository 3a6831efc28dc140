"""Recordings of client requests: reading, saving and replaying them."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer

from kafka_compat.testing import ControlFailed, KafkaBroker, replay
from tests.control.clients import produce, producer


def values(broker: KafkaBroker, topic: str, count: int) -> list[bytes | None]:
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    client.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := client.poll(20)) is not None and message.error() is None:
        found.append(message.value())
    client.close()
    assert len(found) == count
    return found


def transact(broker: KafkaBroker) -> None:
    """Run two transactions of one producer, and abort the second."""
    client = producer(broker, **{"transactional.id": "id"})
    client.init_transactions(20)
    for value in (b"committed", b"aborted"):
        client.begin_transaction()
        client.produce("t", value)
        assert client.flush(20) == 0
        if value == b"committed":
            client.commit_transaction(20)
        else:
            client.abort_transaction(20)


def test_a_recording_contains_the_fields_of_requests_and_responses(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    with broker.control.record() as recorded:
        client = producer(broker, **{"client.id": "mine", "enable.idempotence": True})
        client.produce("t", b"1")
        assert client.flush(20) == 0
        (asked,) = (entry for entry in recorded() if entry["api"] == "Produce")
        with pytest.raises(ControlFailed, match="a recording is in progress"):
            broker.control.ask("POST", "/recording")
    produce(broker, "t")
    assert asked["client_id"] == "mine"
    assert asked["request"]["acks"] == -1
    (topic,) = asked["response"]["responses"]
    assert topic["partition_responses"][0]["base_offset"] == 1
    assert [entry["api"] for entry in recorded()].count("Produce") == 1
    assert "InitProducerId" in {entry["api"] for entry in recorded()}


def test_recorded_transactions_can_be_replayed(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.create_topic("t")
    with broker.control.record() as recorded:
        transact(broker)
    replay.save(recorded(), tmp_path / "transactions.jsonl")
    broker.reset()
    broker.create_topic("t")
    # Take the producer id that the recorded producer had.
    produce_idempotent(broker)
    entries = replay.load(tmp_path / "transactions.jsonl")
    answers = replay.replay(entries, broker.bootstrap_servers)
    ended = [answer for entry, answer in zip(entries, answers, strict=True) if entry["api"] == "EndTxn"]
    assert [answer["error_code"] for answer in ended] == [0, 0]
    # Requests that clients send in the background may have been recorded without a response, and then have
    # none in the replay.
    given = [answer["producer_id"] for answer in answers if answer is not None and "producer_id" in answer]
    before = [entry["response"]["producer_id"] for entry in entries if entry["api"] == "InitProducerId"]
    assert given[0] != before[0]
    assert values(broker, "t", 2) == [b"other", b"committed"]


def produce_idempotent(broker: KafkaBroker) -> None:
    client = producer(broker, **{"enable.idempotence": True})
    client.produce("t", b"other")
    assert client.flush(20) == 0


def test_recorded_group_requests_can_be_replayed(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t", 3)
    with broker.control.record() as recorded:
        client = KafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        )
        assert [next(client).value for _ in range(3)] == [b"0", b"1", b"2"]
        client.commit()
        client.close()
    broker.reset()
    broker.create_topic("t")
    produce(broker, "t", 3)
    answers = replay.replay(recorded(), broker.bootstrap_servers)
    for entry, answer in zip(recorded(), answers, strict=True):
        assert (answer is None) == (entry["response"] is None)
        if answer is not None and "error_code" in answer:
            assert answer["error_code"] == entry["response"]["error_code"], entry["api"]
    again = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0})
    (committed,) = again.committed([TopicPartition("t", 0)], 20)
    assert committed.offset == 3
    again.close()
