"""Members with the consumer protocol (KIP-848): the state machine, and members on a broker."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.consumer_protocol import ConsumerMembership, ConsumerProtocolConsumer
from kafka_compat.client.fetcher import Fetcher, fetch_settings
from kafka_compat.client.group_consumer import GroupSettings, group_settings, uses_consumer_protocol
from kafka_compat.client.groups import committed_offsets, describe_group
from kafka_compat.errors import ErrorCode, KafkaError
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

TOPIC_ID = UUID(int=7)


def answer(epoch: int = 1, error: int = 0, **assigned: Any) -> Any:
    assignment = None
    if assigned:
        topics = [SimpleNamespace(topic_id=TOPIC_ID, partitions=assigned["partitions"])]
        assignment = SimpleNamespace(topic_partitions=topics)
    return SimpleNamespace(
        error_code=error,
        error_message=None,
        member_epoch=epoch,
        heartbeat_interval_ms=5000,
        assignment=assignment,
    )


def test_a_heartbeat_contains_only_changes() -> None:
    member = ConsumerMembership("m", GroupSettings("g", rebalance_timeout_ms=7, assignor="range"))
    joining = member.heartbeat(("t",))
    assert joining["rebalance_timeout_ms"] == 7 and joining["server_assignor"] == "range"
    assert joining["subscribed_topic_names"] == ["t"] and joining["topic_partitions"] == {}
    assert member.heard(answer(partitions=[0, 1]), 10.0)
    assert member.assigned == {TOPIC_ID: {0, 1}}
    assert not member.is_heartbeat_due(("t",), 14.9) and member.is_heartbeat_due(("t",), 15.0)
    member.owned = dict(member.assigned)
    assert member.is_heartbeat_due(("t",), 10.0), "the member reports the partitions immediately"
    assert member.heartbeat(("t",))["topic_partitions"] == member.owned
    unchanged = member.heartbeat(("t",))
    assert unchanged["topic_partitions"] is None and "subscribed_topic_names" not in unchanged
    assert member.heartbeat(("t", "u"))["subscribed_topic_names"] == ["t", "u"]


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_removed_member_joins_again_without_partitions(code: ErrorCode) -> None:
    member = ConsumerMembership("m", GroupSettings("g"))
    member.heartbeat(("t",))
    member.heard(answer(3, partitions=[0]), 10.0)
    member.owned = dict(member.assigned)
    assert not member.heard(answer(error=code), 11.0)
    assert (member.epoch, member.owned, member.assigned) == (0, {}, {})
    assert member.is_heartbeat_due(("t",), 11.0)
    joining = member.heartbeat(("t",))
    assert joining["subscribed_topic_names"] == ["t"] and joining["topic_partitions"] == {}


def test_a_rejected_member_fails() -> None:
    member = ConsumerMembership("m", GroupSettings("g"))
    with pytest.raises(KafkaError):
        member.heard(answer(error=ErrorCode.UNRELEASED_INSTANCE_ID), 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group.protocol": "x"}, "Invalid value x for configuration group.protocol"),
        (
            {"group.protocol": "consumer", "session.timeout.ms": "1", "heartbeat.interval.ms": "1"},
            "heartbeat.interval.ms, session.timeout.ms cannot be set when group.protocol=CONSUMER",
        ),
        ({"group.remote.assignor": "range"}, "cannot be set when group.protocol=CLASSIC"),
    ],
)
def test_contradicting_settings_are_rejected(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        uses_consumer_protocol(given)


class Reader:
    """A member of the group on a broker, and the records that it has read."""

    def __init__(self, broker: KafkaCompatBroker, group: str, topic: str, **settings: str) -> None:
        self.cluster = Cluster(broker.address, {})
        self.fetcher = Fetcher(self.cluster, fetch_settings({"auto.offset.reset": "earliest"}))
        given = {"group.id": group, **settings}
        self.member = ConsumerProtocolConsumer(
            self.cluster, self.fetcher, group_settings(given), lambda: [topic], 300.0
        )
        self.read: list[tuple[int, int]] = []

    def poll(self) -> None:
        self.member.poll(0.05)
        while (record := self.fetcher.take()) is not None:
            self.read.append((record.partition, record.offset))

    def close(self) -> None:
        self.member.close()
        self.cluster.close()


def polled(condition: Callable[[], bool], *readers: Reader) -> Callable[[], bool]:
    def check() -> bool:
        for reader in readers:
            reader.poll()
        return condition()

    return check


def test_members_share_partitions_without_reading_records_twice(broker: KafkaCompatBroker) -> None:
    topic, group = "consumer-protocol-shared", "consumer-protocol-group"
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(topic, 4)])[topic].result(20)
    producer = Producer({"bootstrap.servers": broker.address})

    def produce() -> None:
        for number in range(40):
            producer.produce(topic, b"v", partition=number % 4)
        assert producer.flush(20) == 0

    produce()
    first = Reader(broker, group, topic)
    wait_until(polled(lambda: len(first.read) == 40, first), 30, "all records")
    second = Reader(broker, group, topic)

    def sizes() -> tuple[int, int]:
        return len(first.fetcher.assigned), len(second.fetcher.assigned)

    wait_until(polled(lambda: sizes() == (2, 2), first, second), 30, "two partitions each")
    with Cluster(broker.address, {}) as cluster:
        wait_until(
            polled(lambda: describe_group(cluster, group).state == "Stable", first, second), 30, "Stable"
        )
        produce()
        wait_until(polled(lambda: len(first.read) + len(second.read) == 80, first, second), 30, "records")
        first.close()
        wait_until(polled(lambda: len(second.fetcher.assigned) == 4, second), 30, "all partitions")
        produce()
        wait_until(polled(lambda: len(first.read) + len(second.read) == 120, second), 30, "records")
        assert len({*first.read, *second.read}) == 120
        second.close()
        offsets = committed_offsets(cluster, group)
        assert {offsets[topic, number].offset for number in range(4)} == {30}


def test_a_static_member_keeps_its_partitions_while_it_is_away(broker: KafkaCompatBroker) -> None:
    topic, group = "consumer-protocol-static", "consumer-protocol-static"
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(20)

    def read() -> None:
        reader = Reader(broker, group, topic, **{"group.instance.id": "one"})
        wait_until(polled(lambda: len(reader.fetcher.assigned) == 2, reader), 30, "the partitions")
        reader.close()

    for _ in range(2):
        read()
        with Cluster(broker.address, {}) as cluster:
            described = describe_group(cluster, group)
        assert (described.epoch, len(described.members)) == (2, 1), "no rebalance"
