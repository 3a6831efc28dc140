"""Segments are rolled and deleted by time and size, and readers are informed about deleted offsets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.restart.client import create_topic, fetch, produce, start_of, values_of
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, StartBroker

SOON = {
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "100",
}
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def tidy_broker(start_broker: StartBroker) -> KafkaCompatBroker:
    """A broker that checks for old segments continuously."""
    return start_broker(SOON)


def _segments(log_dir: Path, topic: str) -> list[int]:
    return sorted(int(file.stem) for file in (log_dir / f"{topic}-0").glob("*.log"))


def _wait_for_start_after(connection: Connection, topic: str, offset: int) -> int:
    wait_until(lambda: start_of(connection, topic) > offset, 15, "deletion of old segments", 0.1)
    return start_of(connection, topic)


def test_old_segments_are_deleted_by_size(tidy_broker: KafkaCompatBroker) -> None:
    with Connection(tidy_broker.address) as connection:
        create_topic(connection, "t", configs={"segment.bytes": "2000", "retention.bytes": "5000"})
        for number in range(20):
            produce(connection, "t", [b"%d " % number + b"x" * 900])
        start = _wait_for_start_after(connection, "t", 10)
        # The broker keeps the fewest segments that together reach retention.bytes.
        assert start == 14
        _check_readers(connection, start, 20)
        wait_until(
            lambda: not list((tidy_broker.log_dir / "t-0").glob("*.deleted")), 10, "removal of the files"
        )
    assert _segments(tidy_broker.log_dir, "t") == [14, 16, 18]
    tidy_broker.restart(kill=True)
    with Connection(tidy_broker.address) as connection:
        assert start_of(connection, "t") == start
        assert len(values_of(connection, "t")) == 6


def test_old_segments_are_deleted_by_time(tidy_broker: KafkaCompatBroker) -> None:
    long_ago_ms = int(time.time() * 1000) - 3 * DAY_MS
    with Connection(tidy_broker.address) as connection:
        create_topic(connection, "t", configs={"segment.bytes": "2000", "retention.ms": str(DAY_MS)})
        for number in range(20):
            age = long_ago_ms if number < 10 else long_ago_ms + 3 * DAY_MS
            produce(connection, "t", [b"%d " % number + b"x" * 900], timestamp_ms=age)
        start = _wait_for_start_after(connection, "t", 9)
        assert start == 10
        _check_readers(connection, start, 20)


def test_offsets_continue_after_retention_deletes_all_records_of_a_topic(
    tidy_broker: KafkaCompatBroker,
) -> None:
    long_ago_ms = int(time.time() * 1000) - 3 * DAY_MS
    with Connection(tidy_broker.address) as connection:
        create_topic(connection, "t", configs={"retention.ms": str(DAY_MS)})
        for _ in range(5):
            produce(connection, "t", [b"x"], timestamp_ms=long_ago_ms)
        assert _wait_for_start_after(connection, "t", 0) == 5
    tidy_broker.restart(kill=True)
    with Connection(tidy_broker.address) as connection:
        assert start_of(connection, "t") == 5
        assert produce(connection, "t", [b"new"]) == (ErrorCode.NONE, 5)
        assert values_of(connection, "t") == [b"new"]


def _check_readers(connection: Connection, start: int, end: int) -> None:
    assert fetch(connection, "t", start - 1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(connection, "t", end + 1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    numbers = [int((value or b"").split()[0]) for value in values_of(connection, "t")]
    assert numbers == list(range(start, end))


def test_retention_does_not_affect_topics_with_unlimited_retention(tidy_broker: KafkaCompatBroker) -> None:
    long_ago_ms = int(time.time() * 1000) - 30 * DAY_MS
    with Connection(tidy_broker.address) as connection:
        for name, policy in (("kept", "compact"), ("forever", "delete"), ("witness", "delete")):
            retention = "1000" if name != "forever" else "-1"
            create_topic(connection, name, configs={"retention.ms": retention, "cleanup.policy": policy})
        for _ in range(3):
            produce(connection, "forever", [b"x"], timestamp_ms=long_ago_ms)
            produce(connection, "witness", [b"x"], timestamp_ms=long_ago_ms)
        _wait_for_start_after(connection, "witness", 0)
        assert start_of(connection, "forever") == 0
        assert len(values_of(connection, "forever")) == 3


def test_segments_roll_by_time_and_after_changes_of_settings(broker: KafkaCompatBroker) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t", configs={"segment.ms": "200"})
        create_topic(connection, "unhurried")
        for topic in ("t", "unhurried"):
            produce(connection, topic, [b"first"])
        # Between two appends, the records' timestamps determine the age, as in Kafka.
        later_ms = int(time.time() * 1000) + 1000
        for topic in ("t", "unhurried"):
            produce(connection, topic, [b"second"], timestamp_ms=later_ms)
        assert _segments(broker.log_dir, "t")[-1] == 1
        assert _segments(broker.log_dir, "unhurried") == [0]
        assert values_of(connection, "t") == [b"first", b"second"]
    broker.restart(kill=True)
    with Connection(broker.address) as connection:
        assert values_of(connection, "t") == [b"first", b"second"]
