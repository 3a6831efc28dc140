"""The control API's calls for share groups, with a real client: wait requests, expired locks and faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from kafka_compat.testing import ControlFailed, KafkaBroker
from tests.control.clients import produce
from tests.share_groups.share_members import configure_group
from tests.support.process import wait_until

FROM_THE_START = {"share.auto.offset.reset": "earliest"}


@contextmanager
def worker(broker: KafkaBroker) -> Iterator[ShareConsumer]:
    """A member of the share group g that acknowledges each record of the topic t itself."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "g",
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    consumer = ShareConsumer(settings)
    consumer.subscribe(["t"])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: ShareConsumer, count: int) -> list[Message]:
    """Poll until there are `count` records. All records of a poll must be acknowledged before the next."""
    found: list[Message] = []

    def are_read() -> bool:
        if not found:
            found.extend(each for each in consumer.poll(0.2) if each.error() is None)
        return len(found) >= count

    wait_until(are_read, 20, f"{count} records")
    return found


def test_waiting_ends_when_all_records_are_accepted_or_rejected(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    configure_group(broker.bootstrap_servers, "g", FROM_THE_START)
    produce(broker, "t", 3)
    with pytest.raises(ControlFailed, match="g has 3 remaining records of t, 0 of them in flight"):
        broker.control.await_accepted("g", "t", timeout_s=0)
    with worker(broker) as consumer:
        accepted, released, rejected = read(consumer, 3)
        assert broker.control.await_accepted("g", "t", in_flight=3) == {"remaining": 3, "in_flight": 3}
        consumer.acknowledge(accepted, AcknowledgeType.ACCEPT)
        consumer.acknowledge(released, AcknowledgeType.RELEASE)
        consumer.acknowledge(rejected, AcknowledgeType.REJECT)
        consumer.commit_sync()
        assert broker.control.await_accepted("g", "t", remaining=1) == {"remaining": 1, "in_flight": 1}
        (again,) = read(consumer, 1)
        assert (again.offset(), again.delivery_count()) == (1, 2)
        consumer.acknowledge(again, AcknowledgeType.ACCEPT)
        consumer.commit_sync()
        assert broker.control.await_accepted("g", "t") == {"remaining": 0, "in_flight": 0}
    # The group has no members anymore, so its stored state is looked at.
    assert broker.control.await_accepted("g", "t") == {"remaining": 0, "in_flight": 0}


def test_records_with_expired_locks_are_delivered_again(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    configure_group(broker.bootstrap_servers, "g", FROM_THE_START)
    produce(broker, "t", 2)
    with worker(broker) as slow, worker(broker) as other:
        first = read(slow, 2)
        assert [each.delivery_count() for each in first] == [1, 1]
        assert broker.control.expire_locks("g", "t", partition=1) == 0
        assert broker.control.expire_locks("g", "t", partition=0) == 2
        assert broker.control.expire_locks("g", "t") == 0
        second = read(other, 2)
        assert [each.delivery_count() for each in second] == [2, 2]
        for message in second:
            other.acknowledge(message)
        other.commit_sync()
        broker.control.await_accepted("g", "t")


def test_faults_apply_to_share_fetches_by_topic_and_group(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    configure_group(broker.bootstrap_servers, "g", FROM_THE_START)
    with worker(broker) as consumer:
        consumer.poll(0.5)
        failing = broker.control.fault(
            api="ShareFetch", group="g", topic="t", error="SHARE_SESSION_NOT_FOUND", count=1
        )
        other = broker.control.fault(api="ShareFetch", group="g", topic="other", drop=True)

        def has_failed() -> bool:
            consumer.poll(0.1)
            return failing.hits == 1

        wait_until(has_failed, 20, "a failed fetch")
        produce(broker, "t", 1)
        (message,) = read(consumer, 1)
        consumer.acknowledge(message)
        failing = broker.control.fault(
            api="ShareAcknowledge", topic="t", partition=0, error="UNKNOWN_SERVER_ERROR", count=1
        )
        consumer.commit_sync()
        assert (failing.hits, other.hits) == (1, 0)
        broker.control.remove_faults()
        broker.control.await_accepted("g", "t", remaining=1)


def test_unknown_topics_of_share_groups_are_reported(broker: KafkaBroker) -> None:
    with pytest.raises(ControlFailed, match="unknown topic t"):
        broker.control.await_accepted("g", "t")
    with pytest.raises(ControlFailed, match="unknown topic t"):
        broker.control.expire_locks("g", "t")
