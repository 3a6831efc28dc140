"""Advancing the broker's clock: work due within the skipped time is done when the call returns."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka import KafkaConsumer

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import ControlFailed, KafkaBroker, KafkaCluster
from tests.conformance.wire import Connection
from tests.control.clients import produce, producer
from tests.support import campaign
from tests.support.process import wait_until

DAY_MS = 86_400_000


def consumer(broker: KafkaBroker, **settings: object) -> Consumer:
    given = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0, **settings}
    return Consumer({"auto.offset.reset": "earliest", **given})


def watermarks(broker: KafkaBroker, topic: str) -> tuple[int, int]:
    client = consumer(broker)
    try:
        found: tuple[int, int] = client.get_watermark_offsets(TopicPartition(topic, 0), 20)
        return found
    finally:
        client.close()


def test_retention_deletes_records_after_seven_days(broker: KafkaBroker) -> None:
    broker.create_topic("t", config={"retention.ms": 7 * DAY_MS})
    produce(broker, "t", 10)
    broker.control.advance(timedelta(days=6))
    assert watermarks(broker, "t") == (0, 10)
    broker.control.advance(timedelta(days=1, minutes=1))
    assert watermarks(broker, "t") == (10, 10)
    produce(broker, "t")
    assert watermarks(broker, "t") == (10, 11)


def test_log_append_time_follows_the_controlled_clock(broker: KafkaBroker) -> None:
    broker.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    produce(broker, "t")
    before_ms = broker.control.now_ms()
    now_ms = broker.control.advance(3600)
    assert 3_600_000 <= now_ms - before_ms < 3_610_000
    produce(broker, "t")
    client = consumer(broker)
    client.assign([TopicPartition("t", 0, 0)])
    first, second = (client.poll(20) for _ in range(2))
    client.close()
    assert first is not None and second is not None
    apart_ms = second.timestamp()[1] - first.timestamp()[1]
    assert 3_600_000 <= apart_ms < 3_610_000


def test_a_transaction_past_its_timeout_is_aborted(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = producer(broker, **{"transactional.id": "id", "transaction.timeout.ms": 900_000})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("t", b"aborted")
    assert client.flush(20) == 0
    produce(broker, "t")
    broker.control.advance(timedelta(minutes=16))
    reader = consumer(broker, **{"isolation.level": "read_committed"})
    reader.assign([TopicPartition("t", 0, 0)])
    message = reader.poll(20)
    assert message is not None and message.value() == b"0"
    reader.close()
    with pytest.raises(KafkaException, match="fenced"):
        client.commit_transaction(20)


def dead_member(broker: KafkaBroker, topic: str, session_timeout_ms: int = 45_000) -> None:
    """Join group g with all partitions of the topic, and then stop responding."""
    with_topic = b"\0\0\0\0\0\x01\0%c%s\0\0\0\0" % (len(topic), topic.encode())
    joining = {
        "group_id": "g",
        "session_timeout_ms": session_timeout_ms,
        "rebalance_timeout_ms": 45_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": with_topic}],
    }
    connection = Connection(broker.bootstrap_servers)
    connection.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "g", "key_type": 0})
    joined = connection.ask(ApiKey.JOIN_GROUP, 3, joining)
    assert joined["error_code"] == 0
    mine = {"group_id": "g", "generation_id": joined["generation_id"], "member_id": joined["member_id"]}
    connection.ask(ApiKey.SYNC_GROUP, 2, {**mine, "assignments": []})
    connection.close()


def test_a_dead_member_is_removed_after_its_session_timeout(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    dead_member(broker, "t")
    client = KafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    )
    # The consumer waits for the dead member.
    assert client.poll(300) == {}
    began_s = time.monotonic()
    broker.control.advance(46)
    assert next(client).value == b"0"
    assert time.monotonic() - began_s < 10
    client.close()


def test_advancing_time_takes_less_than_a_second(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    dead_member(broker, "t")
    began_s = time.monotonic()
    for duration in (timedelta(days=7), timedelta(seconds=45), timedelta(minutes=15)):
        broker.control.advance(duration)
    assert time.monotonic() - began_s < (1 if campaign.enabled() else 5), "the higher limit is for slow disks"


def test_all_brokers_of_a_cluster_share_one_clock() -> None:
    with KafkaCluster() as cluster:
        cluster.create_topic("t", config={"retention.ms": DAY_MS})
        produce(cluster, "t", 3)
        cluster.control.advance(timedelta(days=2))
        assert watermarks(cluster, "t") == (3, 3)
        produce(cluster, "t")
        assert watermarks(cluster, "t") == (3, 4)


def test_a_stopped_clock_moves_only_when_it_is_advanced(broker: KafkaBroker) -> None:
    broker.control.stand_still()
    before_ms = broker.control.now_ms()
    broker.create_topic("t", config={"retention.ms": DAY_MS, "message.timestamp.type": "LogAppendTime"})
    produce(broker, "t", 3)
    assert broker.control.advance(1) == before_ms + 1000
    assert broker.control.events() == []
    broker.control.advance(timedelta(days=2))
    (event,) = broker.control.events()
    where = {"topic": "t", "partition": 0, "log_start_offset": 3}
    assert event == {"after_ms": 2 * DAY_MS, **where}
    assert broker.control.now_ms() == before_ms + 1000 + 2 * DAY_MS
    broker.control.stand_still(still=False)
    wait_until(lambda: broker.control.now_ms() > before_ms + 1000 + 2 * DAY_MS, 5, "a running clock")


def test_jobs_due_while_the_clock_was_stopped_run_afterward(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    broker.control.stand_still()
    dead_member(broker, "t", session_timeout_ms=6000)
    broker.control.advance(5.5)
    # Wait half a second longer than the session timeout: with the clock stopped, the session must not expire.
    time.sleep(1)
    assert broker.control.await_group("g", members=1)["members"]
    broker.control.stand_still(still=False)
    broker.control.await_group("g", members=0)


@pytest.mark.parametrize("seconds", [0, -1, 0.0001])
def test_time_can_only_be_advanced_by_at_least_a_millisecond(broker: KafkaBroker, seconds: float) -> None:
    with pytest.raises(ControlFailed, match=r"advance_ms=.*: expected a whole number of at least 1"):
        broker.control.advance(seconds)
