"""Lag in records and in seconds: exact values after changes of the log and of the clock.

The clock is stopped and only advanced by the tests, so that ages are exact to the millisecond.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_compat.testing import KafkaBroker
from tests.metrics.groups import commit, produce, transaction
from tests.metrics.scraping import Scrape

DAY_S = 86_400


class Lagging:
    """A broker whose clock is stopped, and a topic with a group."""

    def __init__(self, broker: KafkaBroker) -> None:
        broker.control.stand_still()
        self.broker = broker
        self.control = broker.control
        self.address = broker.bootstrap_servers

    def produce(self, ages_s: list[float], **how: object) -> None:
        """Write records of these ages."""
        now_ms = self.control.now_ms()
        produce(self.address, "t", [now_ms - round(age_s * 1000) for age_s in ages_s], **how)  # type: ignore[arg-type]

    def commit(self, offset: int) -> None:
        commit(self.address, "g", {("t", 0): offset})

    def lag(self) -> tuple[float | None, float | None]:
        """Return the lag in records and in seconds."""
        seen = Scrape(self.control.url)
        at = {"consumergroup": "g", "topic": "t"}
        seconds = seen.value("kafka_consumergroup_lag_seconds", **at, partition=0)
        assert seen.value("kafka_consumergroup_lag_seconds_max", consumergroup="g") == seconds
        records = seen.value("kafka_consumergroup_lag", **at, partition=0)
        assert seen.value("kafka_consumergroup_lag_sum", **at) == records
        return records, seconds


@pytest.fixture(scope="module")
def running() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def lagging(running: KafkaBroker) -> Iterator[Lagging]:
    yield Lagging(running)
    running.reset()
    assert "Traceback" not in running.log


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_lag_in_seconds_of_a_stopped_group_increases(lagging: Lagging, codec: str) -> None:
    lagging.broker.create_topic("t")
    lagging.produce([100, 90, 95, 80], **{"compression.type": codec})
    lagging.produce([70], **{"compression.type": codec})
    for committed, records, seconds in [(0, 5, 100), (1, 4, 90), (2, 3, 95), (4, 1, 70), (5, 0, 0)]:
        lagging.commit(committed)
        for _ in range(2):
            assert lagging.lag() == (records, seconds), committed
    lagging.commit(2)
    lagging.control.advance(3_600)
    assert lagging.lag() == (3, 3_695)
    lagging.control.advance(0.25)
    assert lagging.lag() == (3, 3_695.25)


def test_with_log_append_time_lag_in_seconds_is_measured_from_the_append(lagging: Lagging) -> None:
    lagging.broker.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    lagging.produce([5_000, 5_000, 5_000])
    lagging.commit(1)
    lagging.control.advance(60)
    lagging.produce([5_000])
    assert lagging.lag() == (3, 60)
    lagging.commit(3)
    assert lagging.lag() == (1, 0)


def test_the_lag_of_a_record_with_a_future_timestamp_is_zero_seconds(lagging: Lagging) -> None:
    lagging.broker.create_topic("t")
    lagging.produce([-1_000, 20])
    lagging.commit(0)
    assert lagging.lag() == (2, 0)
    lagging.commit(1)
    assert lagging.lag() == (1, 20)
    lagging.control.advance(DAY_S)
    lagging.produce([0])
    lagging.commit(2)
    assert lagging.lag() == (1, 0)


def test_lag_in_seconds_is_measured_from_the_first_record_that_retention_kept(lagging: Lagging) -> None:
    lagging.broker.create_topic("t", config={"retention.ms": 2 * DAY_S * 1000})
    lagging.produce([0, 0, 0])
    lagging.control.roll("t")
    lagging.produce([0, 0])
    lagging.commit(1)
    assert lagging.lag() == (4, 0)
    lagging.control.advance(DAY_S)
    lagging.control.roll("t")
    lagging.produce([10, 5])
    assert lagging.lag() == (6, DAY_S)
    lagging.control.advance(1.5 * DAY_S)
    seen = Scrape(lagging.control.url)
    assert seen.value("kafka_topic_partition_oldest_offset", topic="t", partition=0) == 5
    # As in Apache Kafka, the lag counts from the committed offset. The age is that of the first existing
    # record.
    assert lagging.lag() == (6, 1.5 * DAY_S + 10)
    lagging.control.roll("t")
    lagging.control.advance(DAY_S)
    assert lagging.lag() == (6, 0)


def test_lag_in_seconds_is_measured_from_the_next_record_that_compaction_kept(lagging: Lagging) -> None:
    lagging.broker.create_topic("t", config={"cleanup.policy": "compact"})
    lagging.produce([100, 90, 80, 70, 60], keys=["a", "b", "a", "b", "c"])
    lagging.commit(1)
    assert lagging.lag() == (4, 90)
    lagging.control.roll("t")
    lagging.produce([50], keys=["d"])
    lagging.control.compact("t")
    assert lagging.lag() == (5, 80)
    lagging.produce([40], keys=["a"])
    lagging.control.roll("t")
    lagging.produce([30], keys=["d"])
    lagging.control.compact("t")
    assert lagging.lag() == (7, 70)


def test_lag_includes_records_and_markers_of_transactions(lagging: Lagging) -> None:
    lagging.broker.create_topic("t")
    transaction(lagging.address, "t", [1_000], end="commit")
    lagging.commit(0)
    assert lagging.lag() == (2, (lagging.control.now_ms() - 1_000) / 1000)
    lagging.commit(1)
    assert lagging.lag() == (1, 0), "only the marker remains"
    now_ms = lagging.control.now_ms()
    transaction(lagging.address, "t", [now_ms - 30_000], end="abort")
    assert lagging.lag() == (3, 30), "aborted records count, because read_uncommitted consumers read them"
    lagging.commit(4)
    assert lagging.lag() == (0, 0)
    producer = transaction(lagging.address, "t", [now_ms - 20_000, now_ms - 10_000], end="open")
    assert lagging.lag() == (2, 20)
    lagging.commit(5)
    assert lagging.lag() == (1, 10)
    producer.abort_transaction(30)
    lagging.commit(6)
    assert lagging.lag() == (1, 0)
    lagging.produce([3])
    assert lagging.lag() == (2, 3), "the first record after skipped markers counts"


def test_lag_is_correct_after_an_offset_reset_and_after_a_topic_is_recreated(lagging: Lagging) -> None:
    lagging.broker.create_topic("t")
    lagging.produce([50, 40])
    lagging.commit(0)
    assert lagging.lag() == (2, 50)
    lagging.broker.reset()
    lagging.control.stand_still()
    lagging.broker.create_topic("t")
    lagging.produce([20, 10, 5])
    lagging.commit(0)
    assert lagging.lag() == (3, 20)


def test_the_lag_of_an_empty_topic_is_zero(lagging: Lagging) -> None:
    lagging.broker.create_topic("t")
    commit(lagging.address, "g", {("t", 0): 0})
    assert lagging.lag() == (0, 0)


def test_lag_is_correct_under_load(running: KafkaBroker) -> None:
    """A consumer reads, pauses and continues. The expected lag is derived from the consumer's next record."""
    running.create_topic("loaded")
    address = running.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": address, "group.id": "slow", "enable.auto.commit": False})
    consumer.assign([TopicPartition("loaded", 0, 0)])
    at = {"consumergroup": "slow", "topic": "loaded", "partition": 0}
    produced_ms: list[int] = []
    try:
        for number in itertools.count():
            produced_ms += [int(time.time() * 1000) + later for later in range(100)]
            produce(address, "loaded", produced_ms[-100:])
            if number < 10 or number > 20:
                read = 50 if number < 10 else 400
                records = consumer.consume(read, 5)
                last = records[-1].offset()
                assert last is not None
                offset = last + 1
                consumer.commit(offsets=[TopicPartition("loaded", 0, offset)], asynchronous=False)
            before_s = time.time()
            seen = Scrape(running.control.url)
            after_s = time.time()
            assert seen.value("kafka_consumergroup_lag", **at) == len(produced_ms) - offset
            seconds = seen.value("kafka_consumergroup_lag_seconds", **at)
            assert seconds is not None
            if offset == len(produced_ms):
                assert seconds == 0
                break
            since_s = produced_ms[offset] / 1000
            assert before_s - since_s - 1 <= seconds <= after_s - since_s + 1
    finally:
        consumer.close()
    assert number > 20
