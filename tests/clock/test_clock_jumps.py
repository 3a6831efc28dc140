"""Jumps of the wall clock, forward and backward: periodic work of a broker must not be affected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.broker import Broker, BrokerHooks, standalone_broker
from kafka_compat.clock import SystemClock
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.records.records import Record, build_batch
from tests.cluster.embedded import EmbeddedCluster, until

HOUR_MS = 3_600_000


class JumpingClock:
    """A clock whose wall time tests can set."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self.jumped_ms = 0

    def now_ms(self) -> int:
        return self._system.now_ms() + self.jumped_ms

    def monotonic_ms(self) -> int:
        return self._system.monotonic_ms()


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def broker(tmp_path: Path, clock: JumpingClock) -> AsyncIterator[Broker]:
    settings = {
        "log.dirs": str(tmp_path / "logs"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.initial.task.delay.ms": "0",
        "log.retention.check.interval.ms": "100",
        "log.cleaner.backoff.ms": "100",
        "log.flush.interval.ms": "100",
        "log.flush.scheduler.interval.ms": "100",
    }
    broker = standalone_broker(BrokerConfig.from_properties(settings), BrokerHooks(clock=clock))
    await broker.start()
    yield broker
    await broker.stop()


async def made(broker: Broker, configs: dict[str, str]) -> Partition:
    await broker.services.topics.create("t", configs=configs)
    held = broker.services.replicas.get("t", 0)
    assert held is not None
    return held


def append(held: Partition, count: int, clock: JumpingClock) -> None:
    now_ms = clock.now_ms()
    for _ in range(count):
        batch = build_batch([Record(timestamp=now_ms, key=b"k", value=b"x" * 300)])
        held.append(memoryview(bytearray(batch)), now_ms)


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
async def test_retention_continues_after_a_clock_jump(
    broker: Broker, clock: JumpingClock, jump_ms: int
) -> None:
    held = await made(broker, {"segment.bytes": "1000", "retention.bytes": "2000"})
    clock.jumped_ms = jump_ms
    for _ in range(2):
        start = held.log.log_start_offset
        append(held, 20, clock)
        await until(lambda: held.log.log_start_offset > start)  # noqa: B023
        clock.jumped_ms = -jump_ms


async def test_compaction_continues_after_the_clock_jumps_back(broker: Broker, clock: JumpingClock) -> None:
    held = await made(
        broker, {"cleanup.policy": "compact", "segment.bytes": "1000", "min.cleanable.dirty.ratio": "0.01"}
    )
    clock.jumped_ms = -HOUR_MS
    append(held, 20, clock)
    await until(lambda: ("t", 0) in broker.services.log_dirs.clean_offsets)


async def test_timed_flushes_continue_after_the_clock_jumps_back(broker: Broker, clock: JumpingClock) -> None:
    held = await made(broker, {"flush.ms": "100"})
    clock.jumped_ms = -HOUR_MS
    append(held, 1, clock)
    await until(lambda: held.log.flushed_end_offset == 1)


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
async def test_the_isr_does_not_depend_on_the_wall_clock(
    tmp_path: Path, clock: JumpingClock, jump_ms: int
) -> None:
    cluster = EmbeddedCluster(tmp_path, clock=clock)
    await cluster.start()
    await cluster.create_topic("t", configs={"min.insync.replicas": "1"})
    leader = cluster.leader("t")
    assert await cluster.produce(leader, "t", b"before") == ErrorCode.NONE
    await until(lambda: cluster.isr("t") == {1, 2, 3})
    behind = next(broker_id for broker_id in cluster.brokers if broker_id != leader)
    clock.jumped_ms = jump_ms
    held = cluster.brokers[leader].replicas.get("t", 0)
    assert held is not None
    # Write records for twice replica.lag.time.max.ms: replicas that keep up remain in sync despite the jump.
    async with asyncio.timeout(10):
        for _ in range(30):
            assert await cluster.produce(leader, "t", b"x") == ErrorCode.NONE
            assert set(held.isr) == {1, 2, 3}
            # the interval between records, over longer than replica.lag.time.max.ms
            await asyncio.sleep(0.1)
    # A replica that does not keep up leaves the ISR.
    fetching: Any = cluster.brokers[behind].replicas.fetching
    await fetching.close()
    assert await cluster.produce(leader, "t", b"after", acks=1) == ErrorCode.NONE
    await until(lambda: behind not in cluster.isr("t") and bool(cluster.isr("t")))
    await cluster.stop()
