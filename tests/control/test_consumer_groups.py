"""The control API with consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_compat.testing import ControlFailed, KafkaBroker
from tests.control.clients import produce
from tests.support.process import wait_until


@contextmanager
def member(broker: KafkaBroker, partitions: int, **settings: object) -> Iterator[Consumer]:
    """Run a member of the group g, and wait until it has this number of partitions of the topic t."""
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    client.subscribe(["t"])
    wait_until(lambda: client.poll(0.05) is None and len(client.assignment()) == partitions, 20, "partitions")
    yield client
    client.close()


def test_waiting_for_a_state_members_and_lag_succeeds(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2)
    produce(broker, "t", 10)
    with member(broker, 2, **{"client.id": "reader"}) as client:
        found = broker.control.await_group("g", state="Stable", members=1)
        assert [each["client_id"] for each in found["members"]] == ["reader"]
        for partition in range(2):
            client.commit(offsets=[TopicPartition("t", partition, 4)], asynchronous=False)
        assert broker.control.await_group("g", lag=2)["lag"] == 2
    assert broker.control.await_group("g", state="Empty", members=0)["members"] == []


def test_an_expired_member_loses_its_partitions_and_joins_again(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2)
    lost: list[object] = []
    with member(broker, 2) as client:
        client.subscribe(["t"], on_lost=lambda _, partitions: lost.extend(partitions))
        (one,) = broker.control.await_group("g", members=1)["members"]
        with pytest.raises(ControlFailed, match="group g has no member other"):
            broker.control.expire_member("g", "other")
        broker.control.expire_member("g", one["member_id"])
        wait_until(lambda: client.poll(0.05) is None and len(lost) == 2, 30, "loss of the assignment")
        wait_until(lambda: client.poll(0.05) is None and len(client.assignment()) == 2, 30, "partitions")


def test_members_leave_while_time_is_advanced(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    with member(broker, 1):
        broker.control.await_group("g", state="Stable", members=1)
        broker.control.advance(50)
        (event,) = (event for event in broker.control.ask("GET", "/events") if "group" in event)
        assert (event["group"], event["state"], event["members"]) == ("g", "Empty", 0)


def test_a_group_is_restored_from_a_snapshot(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2)
    with member(broker, 2) as client:
        client.commit(offsets=[TopicPartition("t", 1, 7)], asynchronous=False)
    before = broker.control.await_group("g", state="Empty", members=0)
    broker.control.snapshot("a")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_consumer_groups(["g"])["g"].result(20)
    broker.control.restore("a")
    assert broker.control.await_group("g", state="Empty", members=0) == before
    with member(broker, 2) as client:
        assert client.committed([TopicPartition("t", 1)], 20)[0].offset == 7
    broker.control.delete_snapshot("a")


def test_a_reset_deletes_consumer_groups(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    with member(broker, 1):
        broker.control.await_group("g", state="Stable")
    broker.control.reset()
    assert broker.control.await_group("g", state="Dead")["members"] == []


@pytest.mark.parametrize("criterion", [{"group": "g"}, {"topic": "t"}, {}])
def test_a_heartbeat_with_an_error_is_retried(broker: KafkaBroker, criterion: dict[str, str]) -> None:
    broker.create_topic("t")
    error = {"error": "COORDINATOR_NOT_AVAILABLE", "count": 1}
    fault = broker.control.fault(api="ConsumerGroupHeartbeat", **criterion, **error)
    with member(broker, 1):
        assert fault.hits == 1
    fault.remove()


def test_a_description_of_one_group_fails(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    with member(broker, 1):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        with broker.control.fault(api="ConsumerGroupDescribe", group="other", error="INVALID_REQUEST"):
            described = admin.describe_consumer_groups(["g"])["g"].result(20)
            assert len(described.members) == 1
        api = "ConsumerGroupDescribe"
        with (
            broker.control.fault(api=api, group="g", error="GROUP_AUTHORIZATION_FAILED"),
            pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"),
        ):
            admin.describe_consumer_groups(["g"])["g"].result(20)
