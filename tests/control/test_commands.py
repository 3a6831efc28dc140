"""Periodic work of a broker, run on request."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_compat.testing import ControlFailed, KafkaBroker, KafkaCluster
from tests.control.clients import producer
from tests.support.process import wait_until

pytestmark = pytest.mark.parametrize("running", [KafkaBroker, KafkaCluster], indirect=True, scope="module")


def produce(broker: KafkaBroker, topic: str, *records: tuple[bytes, bytes]) -> None:
    client = producer(broker)
    for key, value in records:
        client.produce(topic, value, key, partition=0)
    assert client.flush(20) == 0


def consume(broker: KafkaBroker, topic: str) -> list[tuple[bytes | None, bytes | None, int | None]]:
    """Return all records of a topic."""
    settings = {"group.id": "reader", "enable.partition.eof": True, "log_level": 0}
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    client.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := client.poll(20)) is not None and message.error() is None:
        found.append((message.key(), message.value(), message.offset()))
    client.close()
    return found


def test_compact_keeps_the_last_value_of_each_key(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2, config={"cleanup.policy": "compact"})
    produce(broker, "t", (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"a", b"3"))
    broker.control.compact("t")
    assert consume(broker, "t") == [(b"b", b"1", 1), (b"a", b"3", 3)]
    broker.control.compact("t")
    produce(broker, "t", (b"b", b"2"))
    broker.control.compact("t")
    assert consume(broker, "t") == [(b"a", b"3", 3), (b"b", b"2", 4)]


def test_compact_keeps_records_younger_than_min_compaction_lag(broker: KafkaBroker) -> None:
    broker.create_topic("t", config={"cleanup.policy": "compact", "min.compaction.lag.ms": 3_600_000})
    produce(broker, "t", (b"a", b"1"), (b"a", b"2"))
    broker.control.compact("t")
    assert len(consume(broker, "t")) == 2
    broker.control.advance(3601)
    broker.control.compact("t")
    assert consume(broker, "t") == [(b"a", b"2", 1)]


def test_retention_by_size_deletes_closed_segments(broker: KafkaBroker) -> None:
    broker.create_topic("t", config={"retention.bytes": 0})
    produce(broker, "t", (b"a", b"1"))
    broker.control.roll("t")
    broker.control.apply_retention("t")
    assert consume(broker, "t") == []


def test_flushing_all_partitions_succeeds(broker: KafkaBroker) -> None:
    broker.create_topic("t", 3)
    produce(broker, "t", (b"a", b"1"))
    broker.control.flush("t")


def test_expiring_a_session_removes_the_member(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0}
    lost: list[object] = []
    client = Consumer(settings)
    client.subscribe(["t"], on_lost=lambda _, partitions: lost.extend(partitions))
    wait_until(lambda: client.poll(0.05) is None and len(client.assignment()) == 2, 20, "an assignment")
    (member,) = broker.control.await_group("g", state="Stable", members=1)["members"]
    broker.control.expire_member("g", member["member_id"])
    wait_until(lambda: client.poll(0.05) is None and len(lost) == 2, 20, "loss of the assignment")
    wait_until(
        lambda: client.poll(0.05) is None and len(client.assignment()) == 2,
        20,
        "a new assignment",
    )
    (again,) = broker.control.await_group("g", state="Stable", members=1)["members"]
    assert again["member_id"] != member["member_id"]
    client.close()


def test_missing_topics_and_groups_are_reported(broker: KafkaBroker) -> None:
    with pytest.raises(ControlFailed, match="unknown topic t"):
        broker.control.roll("t")
    with pytest.raises(ControlFailed, match="unknown group g"):
        broker.control.expire_member("g", "m")
    broker.create_topic("t")
    with pytest.raises(ControlFailed, match=r"cleanup.policy of t is not compact"):
        broker.control.compact("t")
