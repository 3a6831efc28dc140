"""Brokers that are paused, partitioned from each other, or cut off from the metadata store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import ControlFailed, KafkaBroker, KafkaCluster
from tests.conformance.wire import Connection
from tests.control.clients import produce, producer
from tests.control.values import sent, stored
from tests.support.process import wait_until

PATIENCE_S = 20
LAG_MS = 1000


class Seen(NamedTuple):
    """The state of a partition as clients see it."""

    leader: int
    isr: list[int]
    controller: int


@pytest.fixture(scope="module")
def running() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, {"replica.lag.time.max.ms": LAG_MS}) as cluster:
        yield cluster


def seen(broker: KafkaBroker, by: int | None = None) -> Seen:
    connection = Connection(addresses(broker)[one_that_reaches_all(broker) if by is None else by])
    answer = connection.ask(ApiKey.METADATA, 4, {"topics": [{"name": "t"}]})
    connection.close()
    (topic,) = answer["topics"]
    (partition,) = topic["partitions"]
    return Seen(partition["leader_id"], sorted(partition["isr_nodes"]), answer["controller_id"])


def addresses(broker: KafkaBroker) -> dict[int, str]:
    return dict(enumerate(broker.bootstrap_servers.split(","), 1))


def one_that_reaches_all(broker: KafkaBroker) -> int:
    """Return a broker that is not isolated from any other."""
    return next(
        int(each["broker"])
        for each in reversed(broker.control.brokers())
        if not (each["is_paused"] or each["cut_from"] or each["is_cut_from_coordination"])
    )


def another_than(broker_id: int) -> int:
    return next(each for each in (1, 2, 3) if each != broker_id)


def ready(broker: KafkaBroker) -> int:
    """Return the leader of the topic, once all replicas are in sync."""
    broker.create_topic("t", config={"min.insync.replicas": 2})
    wait_until(lambda: len(seen(broker).isr) == 3, PATIENCE_S, "all replicas in sync")
    produce(broker, "t")
    return seen(broker).leader


def test_a_paused_broker_responds_after_it_is_resumed(broker: KafkaBroker) -> None:
    leader = ready(broker)
    before = Connection(addresses(broker)[leader])
    broker.control.pause(leader)
    assert [each["broker"] for each in broker.control.brokers() if each["is_paused"]] == [leader]
    after = Connection(addresses(broker)[leader])
    for connection in (before, after):
        connection.begin(ApiKey.METADATA, 4, {"topics": []})
        assert connection.hears_nothing()
    client = producer(broker)
    client.produce("t", b"1")
    assert client.flush(0.5) == 1
    broker.control.resume(leader)
    for connection in (before, after):
        assert connection.finish(ApiKey.METADATA, 4)["topics"] == []
        connection.close()
    assert client.flush(PATIENCE_S) == 0
    assert stored(broker, "t") == [b"0", b"1"]


def test_leadership_moves_away_from_a_broker_that_is_paused_for_too_long(broker: KafkaBroker) -> None:
    leader = ready(broker)
    broker.control.pause(leader)
    broker.control.advance(20)
    wait_until(lambda: seen(broker).leader != leader, PATIENCE_S, "a new leader")
    client = producer(broker)
    assert sent(client, "t", b"1") == [None]
    broker.control.resume(leader)
    by = another_than(leader)
    wait_until(lambda: len(seen(broker, by).isr) == 3, PATIENCE_S, "all replicas in sync again")
    assert stored(broker, "t") == [b"0", b"1"]


def test_a_follower_partitioned_from_its_leader_leaves_the_isr(broker: KafkaBroker) -> None:
    leader = ready(broker)
    # Do not choose the controller: the leader could not reach it to shrink the ISR.
    follower = next(each for each in (1, 2, 3) if each not in (leader, seen(broker).controller))
    broker.control.cut(leader, follower)
    assert sent(producer(broker), "t", b"1") == [None], "acknowledged after the follower left the ISR"
    assert seen(broker).isr == sorted({1, 2, 3} - {follower})
    broker.control.mend(follower)
    wait_until(lambda: len(seen(broker).isr) == 3, PATIENCE_S, "all replicas in sync again")


def test_an_isolated_leader_loses_leadership_and_uncommitted_records(
    broker: KafkaBroker,
) -> None:
    leader = ready(broker)
    for other in {1, 2, 3} - {leader}:
        broker.control.cut(leader, other)
    broker.control.cut_coordination(leader)
    broker.control.advance(20)
    by = another_than(leader)
    wait_until(lambda: seen(broker, by).leader != leader, PATIENCE_S, "a new leader")
    assert seen(broker, leader).leader == leader, "the isolated broker still believes that it leads"
    broker.control.mend(leader)
    wait_until(lambda: len(seen(broker, by).isr) == 3, PATIENCE_S, "all replicas in sync again")
    assert sent(producer(broker), "t", b"1") == [None]
    assert stored(broker, "t") == [b"0", b"1"]


def test_a_broker_starts_a_new_session_after_expiry(broker: KafkaBroker) -> None:
    leader = ready(broker)
    broker.control.expire_session(leader)
    anew = f"The metadata session expired; registering broker {leader} again"
    wait_until(lambda: anew in broker.log, PATIENCE_S, "registration after the session expired")
    wait_until(lambda: len(seen(broker).isr) == 3, PATIENCE_S, "all replicas in sync again")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    wait_until(lambda: len(admin.list_topics("t", PATIENCE_S).brokers) == 3, PATIENCE_S, "all are registered")
    assert sent(producer(broker), "t", b"1") == [None]


def test_a_standalone_broker_can_be_paused() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        client = producer(broker)
        broker.pause()
        client.produce("t", b"1")
        assert client.flush(0.5) == 1
        broker.resume()
        assert client.flush(PATIENCE_S) == 0
        broker.pause()
    assert not broker.running


def test_invalid_broker_arguments_are_rejected(broker: KafkaBroker) -> None:
    with pytest.raises(ControlFailed, match="unknown broker 9: expected one of 1, 2, 3"):
        broker.control.pause(9)
    with pytest.raises(ControlFailed, match="from=1: expected another of 1, 2, 3"):
        broker.control.cut(1, 1)
    with pytest.raises(ControlFailed, match="expected either from, the ID of another broker, or coord"):
        broker.control.ask("POST", "/brokers/1/cut")
    with KafkaBroker() as lone, pytest.raises(ControlFailed, match="cannot be expired"):
        lone.control.expire_session(lone.control.brokers()[0]["broker"])
