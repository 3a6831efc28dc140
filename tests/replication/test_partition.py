"""The high watermark of a partition, and the order of notifications about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.storage.config import LogConfig
from tests.replication.partition_harness import Room


@pytest.fixture
def make_room(tmp_path: Path) -> Iterator[Callable[[LogConfig], Room]]:
    rooms: list[Room] = []

    def make(config: LogConfig) -> Room:
        rooms.append(Room(tmp_path, config))
        return rooms[-1]

    yield make
    for room in rooms:
        room.log_dirs.close()


def test_readers_are_woken_once_after_the_responses_to_several_appends(
    make_room: Callable[[LogConfig], Room],
) -> None:
    room = make_room(LogConfig())
    for _ in range(3):
        room.wait(room.append(2))
    assert room.answers == [(2, ErrorCode.NONE), (4, ErrorCode.NONE), (6, ErrorCode.NONE)]
    assert room.heard == []
    room.run_soon()
    assert room.heard == [6]
    room.append()
    room.run_soon()
    assert room.heard == [6, 7]


def test_with_flush_messages_1_records_are_committed_only_after_a_flush(
    make_room: Callable[[LogConfig], Room],
) -> None:
    room = make_room(LogConfig(flush_messages=1))
    room.wait(room.append())
    assert room.partition.high_watermark == 0
    assert room.answers == []
    room.flusher.finish()
    room.run_soon()
    assert room.answers == [(1, ErrorCode.NONE)]
    assert room.heard == [1]


def test_with_flush_messages_3_two_records_are_committed_before_their_flush(
    make_room: Callable[[LogConfig], Room],
) -> None:
    room = make_room(LogConfig(flush_messages=3))
    room.append(2)
    assert room.partition.high_watermark == 2
    room.append(1)
    assert room.partition.high_watermark == 2
    room.flusher.finish()
    assert room.partition.high_watermark == 3


def test_a_failed_flush_resigns_leadership_and_fails_waiting_requests(
    make_room: Callable[[LogConfig], Room],
) -> None:
    room = make_room(LogConfig(flush_messages=1))
    room.wait(room.append())
    room.flusher.finish(OSError("no"))
    assert room.answers == [(1, ErrorCode.KAFKA_STORAGE_ERROR)]
    assert room.partition.high_watermark == 0
    with pytest.raises(KafkaError) as refused:
        room.append()
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_failing_waiter_does_not_fail_the_append(make_room: Callable[[LogConfig], Room]) -> None:
    room = make_room(LogConfig(flush_messages=1))

    def fail(code: ErrorCode) -> None:
        raise RuntimeError("error in a waiter")

    offset = room.append()
    room.partition.when_committed(offset, fail)
    room.wait(offset)
    room.flusher.finish()
    assert room.answers == [(1, ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("current_leader_epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_requests_with_a_different_leader_epoch_get_an_error(
    make_room: Callable[[LogConfig], Room], current_leader_epoch: int, code: ErrorCode
) -> None:
    room = make_room(LogConfig())
    room.partition.become_leader(1, (1,))
    assert room.partition.check_leader_epoch(current_leader_epoch) == code
