"""Control of a partition's leader and ISR."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from kafka_compat.testing import ControlFailed, KafkaBroker, KafkaCluster
from tests.control.clients import produce, producer
from tests.control.values import sent, stored
from tests.support.process import wait_until

pytestmark = pytest.mark.parametrize("running", [KafkaCluster], indirect=True, scope="module")
ALL = [1, 2, 3]


def ready(broker: KafkaBroker) -> int:
    """Return the leader of the topic, once all replicas are in sync."""
    broker.create_topic("t", config={"min.insync.replicas": 2})
    produce(broker, "t")
    leader: int = broker.control.partition("t")["leader"]
    return leader


def test_leadership_can_be_moved_to_each_replica(broker: KafkaBroker) -> None:
    leader = ready(broker)
    client = producer(broker)
    for count, to in enumerate((*(each for each in ALL if each != leader), leader), 2):
        before = broker.control.partition("t")
        found = broker.control.move_leader("t", to=to)
        assert found["leader"] == found["replicas"][0] == to
        assert found["leader_epoch"] > before["leader_epoch"]
        assert sent(client, "t", b"%d" % count) == [None]
        assert broker.control.move_leader("t")["leader"] == to, "the new leader is the preferred replica"
    assert stored(broker, "t") == [b"0", b"2", b"3", b"4"]


def test_a_follower_falls_out_of_sync_and_rejoins_the_isr(broker: KafkaBroker) -> None:
    leader = ready(broker)
    one, other = (each for each in ALL if each != leader)
    assert broker.control.shrink_isr("t", broker=one)["isr"] == sorted([leader, other])
    client = producer(broker, **{"message.timeout.ms": 1000, "acks": "all"})
    assert sent(client, "t", b"1") == [None]
    assert broker.control.shrink_isr("t", broker=other)["isr"] == [leader]
    assert sent(client, "t", b"too few") == ["_MSG_TIMED_OUT"]
    with pytest.raises(ControlFailed, match=f"broker={one}: expected an in-sync replica: {leader}"):
        broker.control.move_leader("t", to=one)
    assert broker.control.restore_isr("t", broker=one)["isr"] == sorted([leader, one])
    assert sent(client, "t", b"2") == [None]
    assert broker.control.restore_isr("t", broker=other)["isr"] == ALL
    assert broker.control.move_leader("t", to=other)["leader"] == other
    assert stored(broker, "t") == [b"0", b"1", b"2"]


def test_clients_follow_a_moved_leader(broker: KafkaBroker) -> None:
    leader = ready(broker)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    follower = next(each for each in ALL if each != leader)
    broker.control.shrink_isr("t", broker=follower)

    def isr() -> list[int]:
        return sorted(admin.list_topics("t", 20).topics["t"].partitions[0].isrs)

    wait_until(lambda: isr() == [each for each in ALL if each != follower], 20, "the ISR in the metadata")
    broker.control.restore_isr("t", broker=follower)
    wait_until(lambda: isr() == ALL, 20, "the ISR in the metadata")


def test_followers_rejoin_after_a_reset(broker: KafkaBroker) -> None:
    leader = ready(broker)
    for follower in ALL:
        if follower != leader:
            broker.control.shrink_isr("t", broker=follower)
    broker.reset()
    ready(broker)
    assert broker.control.partition("t")["isr"] == ALL
    assert sent(producer(broker, acks="all"), "t", b"1") == [None]


def test_unknown_partitions_and_brokers_are_rejected(broker: KafkaBroker) -> None:
    with pytest.raises(ControlFailed, match="unknown partition t-0"):
        broker.control.move_leader("t")
    leader = ready(broker)
    with pytest.raises(ControlFailed, match="broker=9: expected an in-sync replica: 1, 2, 3"):
        broker.control.move_leader("t", to=9)
    with pytest.raises(ControlFailed, match=f"broker={leader}: expected a follower of"):
        broker.control.shrink_isr("t", broker=leader)
    broker.create_topic("alone", replication_factor=1)
    with pytest.raises(ControlFailed, match="none: it has one replica"):
        broker.control.shrink_isr("alone", broker=2)
