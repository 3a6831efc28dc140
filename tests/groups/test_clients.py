"""Groups of real clients across a broker restart, with static members and with incremental rebalances.

tests/clients compares the behaviour of ordinary groups with Apache Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.servers import KafkaCompatBroker

PARTITIONS = 6
PATIENCE_S = 40


class Member:
    """A consumer that records its assigned and revoked partitions, and the records it reads."""

    def __init__(self, address: str, group: str, topic: str, **settings: Any) -> None:
        self.given: list[int] = []
        self.taken: list[int] = []
        self.read: list[bytes] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "topic.metadata.refresh.interval.ms": 500,
                "reconnect.backoff.max.ms": 500,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.given += [partition.partition for partition in partitions]

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.taken += [partition.partition for partition in partitions]

    @property
    def partitions(self) -> set[int]:
        return {partition.partition for partition in self.consumer.assignment()}

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is None:
            self.read.append(message.value() or b"")
            self.consumer.commit(message=message, asynchronous=True)


def poll_until(members: list[Member], condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, [(member.partitions, len(member.read)) for member in members]
        for member in members:
            member.poll()


def shared_out(members: list[Member]) -> bool:
    """Return whether each partition is assigned to exactly one member, and all members have the same number
    of partitions.
    """
    owned = [member.partitions for member in members]
    return (
        all(len(one) == PARTITIONS // len(members) for one in owned)
        and len(set().union(*owned)) == PARTITIONS
    )


def committed(member: Member, topic: str) -> int:
    """Return the sum of the group's committed offsets."""
    wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return sum(max(partition.offset, 0) for partition in member.consumer.committed(wanted))


def create(address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(PATIENCE_S)


def produce(address: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all", "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


@contextmanager
def members_of(address: str, group: str, topic: str, *settings: dict[str, Any]) -> Iterator[list[Member]]:
    members = [Member(address, group, topic, **one) for one in settings]
    try:
        yield members
    finally:
        for member in members:
            member.consumer.close()


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_members_keep_their_assignment_after_a_restart(broker: KafkaCompatBroker, kill: bool) -> None:
    create(broker.address, "topic")
    first, second = ([b"%s-%d" % (part, number) for number in range(60)] for part in (b"before", b"after"))
    with members_of(broker.address, "group", "topic", {}, {}, {}) as members:
        poll_until(members, lambda: shared_out(members))
        produce(broker.address, "topic", first)
        poll_until(members, lambda: sum(len(member.read) for member in members) >= 60)
        owned = [member.partitions for member in members]
        for member in members:
            member.taken.clear()
        poll_until(members, lambda: committed(members[0], "topic") == 60)
        broker.restart(kill=kill)
        produce(broker.address, "topic", second)
        poll_until(members, lambda: sum(len(member.read) for member in members) >= 120)
        assert [member.taken for member in members] == [[], [], []]
        assert [member.partitions for member in members] == owned
        assert sorted(value for member in members for value in member.read) == sorted(first + second)
        poll_until(members, lambda: committed(members[0], "topic") == 120)


def test_a_static_member_restarts_without_a_rebalance(shared_broker: KafkaCompatBroker) -> None:
    address = shared_broker.address
    create(address, "static-topic")
    static = [{"group_instance_id": f"instance-{number}"} for number in range(2)]
    with members_of(address, "static-group", "static-topic", *static) as members:
        poll_until(members, lambda: shared_out(members))
        owned = members[0].partitions
        members[1].taken.clear()
        members[0].consumer.close()
        members[0] = Member(address, "static-group", "static-topic", **static[0])
        poll_until(members, lambda: members[0].partitions == owned)
        assert members[1].taken == []


def test_cooperative_members_keep_their_other_partitions_during_a_rebalance(
    shared_broker: KafkaCompatBroker,
) -> None:
    address = shared_broker.address
    create(address, "cooperative-topic")
    cooperative = {"partition_assignment_strategy": "cooperative-sticky"}
    with members_of(address, "cooperative-group", "cooperative-topic", cooperative, cooperative) as members:
        poll_until(members, lambda: shared_out(members))
        before = [member.partitions for member in members]
        for member in members:
            member.taken.clear()
        members.append(Member(address, "cooperative-group", "cooperative-topic", **cooperative))
        poll_until(members, lambda: shared_out(members))
        for member, owned in zip(members, before, strict=False):
            assert len(member.taken) == 1
            assert member.partitions == owned - set(member.taken)
