"""log.flush.interval.messages=1: records are neither acknowledged nor readable before a flush to disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode
from kafka_compat.storage import filesystem
from tests.conformance.wire import Connection
from tests.restart.client import create_topic, fetch, produce
from tests.support.process import wait_until

LoneBroker = Broker


class SlowDisk:
    """Replaces fdatasync: each call blocks until the test releases it."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.let_through = threading.Event()
        self.let_through.set()
        self.count = 0
        self.failure: OSError | None = None

    def sync(self, fd: int) -> None:
        self.count += 1
        self.entered.release()
        assert self.let_through.wait(20)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    disk = SlowDisk()
    monkeypatch.setattr(filesystem, "_fdatasync", disk.sync)
    return disk


@pytest.fixture
async def broker(disk: SlowDisk, tmp_path: Path) -> AsyncIterator[LoneBroker]:
    """A broker in this process on the slow disk."""
    settings = {
        "log.dirs": str(tmp_path / "logs"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.flush.interval.messages": "1",
    }
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    yield broker
    disk.let_through.set()
    await broker.stop()


@pytest.fixture
def address(broker: LoneBroker) -> str:
    host, port = broker.addresses["PLAINTEXT"]
    return f"{host}:{port}"


@pytest.mark.parametrize("acks", [1, -1])
async def test_a_record_is_acknowledged_and_readable_only_after_its_sync(
    address: str, disk: SlowDisk, acks: int
) -> None:
    writer, reader = Connection(address), Connection(address)
    await asyncio.to_thread(create_topic, writer, "t")
    assert await asyncio.to_thread(produce, writer, "t", [b"first"]) == (ErrorCode.NONE, 0)
    assert disk.count >= 1
    while disk.entered.acquire(blocking=False):
        pass
    disk.let_through.clear()
    answer = asyncio.create_task(asyncio.to_thread(produce, writer, "t", [b"second"], acks=acks))
    assert await asyncio.to_thread(disk.entered.acquire, timeout=10)
    seen = await asyncio.to_thread(fetch, reader, "t")
    assert [record.value for record in seen.records] == [b"first"]
    assert seen.high_watermark == 1
    assert not answer.done()
    disk.let_through.set()
    assert await answer == (ErrorCode.NONE, 1)
    seen = await asyncio.to_thread(fetch, reader, "t")
    assert [record.value for record in seen.records] == [b"first", b"second"]
    writer.close()
    reader.close()


async def test_concurrent_writers_share_a_sync(broker: LoneBroker, address: str, disk: SlowDisk) -> None:
    writers = [Connection(address) for _ in range(4)]
    await asyncio.to_thread(create_topic, writers[0], "t")
    await asyncio.to_thread(produce, writers[0], "t", [b"x"])
    before = disk.count
    disk.let_through.clear()
    while disk.entered.acquire(blocking=False):
        pass
    first = asyncio.create_task(asyncio.to_thread(produce, writers[0], "t", [b"0"]))
    assert await asyncio.to_thread(disk.entered.acquire, timeout=10)
    others = [asyncio.create_task(asyncio.to_thread(produce, writer, "t", [b"x"])) for writer in writers[1:]]
    partition = broker.services.replicas.get("t", 0)
    assert partition is not None
    log = partition.log
    await asyncio.to_thread(wait_until, lambda: log.log_end_offset == 5, 10, "appends of all writers")
    assert partition.high_watermark == 1
    disk.let_through.set()
    answers = await asyncio.gather(first, *others)
    assert sorted(answer.offset for answer in answers) == list(range(1, 5))
    assert disk.count - before == 2
    for writer in writers:
        writer.close()


async def test_a_record_whose_sync_fails_is_not_acknowledged(address: str, disk: SlowDisk) -> None:
    with Connection(address) as writer:
        await asyncio.to_thread(create_topic, writer, "t")
        disk.failure = OSError(5, "Input/output error")
        answer = await asyncio.to_thread(produce, writer, "t", [b"x"])
        assert answer.error == ErrorCode.KAFKA_STORAGE_ERROR
        disk.failure = None
        # A second fdatasync would succeed although the pages of the failed one are lost.
        answer = await asyncio.to_thread(produce, writer, "t", [b"y"])
        assert answer.error == ErrorCode.KAFKA_STORAGE_ERROR
