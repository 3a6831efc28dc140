"""Delayed reads, which wait for more records: when a reader is woken, and the cleanup at the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_compat.replication.delayed_read import DelayedRead
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.records.records import Record, build_batch
from tests.replication.partition_harness import Room

BATCH_BYTES = len(build_batch([Record(timestamp=1, value=b"v")]))
NEVER_MS = 60_000


class Reader:
    """A read of one partition that waits for a number of bytes, and counts how many times it was woken."""

    def __init__(self, room: Room, missing_bytes: int, max_wait_ms: int = NEVER_MS) -> None:
        self.waiting: set[DelayedRead] = set()
        self.woken = 0
        self.was_woken = asyncio.Event()
        self.read = DelayedRead(self.wake, self.waiting)
        self.deferred = self.read.start([room.partition], missing_bytes, max_wait_ms)

    def wake(self) -> None:
        self.woken += 1
        self.was_woken.set()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path, LogConfig())
    yield made
    made.log_dirs.close()


async def test_a_reader_is_woken_when_enough_bytes_arrive(room: Room) -> None:
    reader = Reader(room, 2 * BATCH_BYTES)
    room.append()
    room.run_soon()
    assert reader.woken == 0
    room.append()
    room.run_soon()
    assert reader.woken == 1
    reader.read.missing_bytes = BATCH_BYTES + 1
    room.append()
    room.run_soon()
    assert reader.woken == 1, "one byte is still missing"
    room.append()
    room.run_soon()
    assert reader.woken == 2
    reader.read.end()


async def test_a_reader_is_woken_at_the_deadline(room: Room) -> None:
    reader = Reader(room, 1, max_wait_ms=1)
    assert not reader.read.has_expired
    async with asyncio.timeout(10):
        await reader.was_woken.wait()
    assert reader.read.has_expired
    reader.read.end()


async def test_a_reader_is_woken_when_the_leader_changes(room: Room) -> None:
    reader = Reader(room, 10 * BATCH_BYTES)
    room.partition.become_follower(2, 1)
    assert reader.woken == 1
    reader.read.end()


def _end(reader: Reader) -> None:
    assert reader.read.end() is reader.deferred


def _leave(reader: Reader) -> None:
    reader.deferred.cancel()


@pytest.mark.parametrize("end", [_end, _leave], ids=["completed", "the caller disconnected"])
async def test_a_reader_is_never_woken_after_its_read_has_ended(
    room: Room, end: Callable[[Reader], None]
) -> None:
    reader = Reader(room, 1, max_wait_ms=1)
    assert reader.waiting == {reader.read}
    end(reader)
    assert reader.read.is_over and not reader.waiting and not room.partition.listeners.keys() - {room}
    room.append()
    room.run_soon()
    loop = asyncio.get_running_loop()
    expired = loop.create_future()
    loop.call_later(0.002, expired.set_result, None)
    await expired
    assert reader.woken == 0
    assert reader.read.end() is None


async def test_a_canceled_reader_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    gc.disable()
    try:
        room = Room(tmp_path, LogConfig())
        reader = Reader(room, 1)
        left = weakref.ref(reader)
        reader.deferred.cancel()
        del reader
        assert left() is None
    finally:
        gc.enable()
        room.log_dirs.close()
