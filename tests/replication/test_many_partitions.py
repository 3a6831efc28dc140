"""The cost of a large number of partitions: memory per partition, and the work of periodic jobs, which must
not grow with the number of partitions.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from tests.storage.log_support import START_MS, batch

PARTITIONS = 1_000
PER_TOPIC = 50
BYTES_PER_PARTITION_MAX = 3_600
"""Maximum size of the Python objects for the log, the partition, its metadata and nodes. It was 5,900."""
CALLS_MAX = 1_000
"""Maximum number of function calls by all jobs. There were at least ten per partition before."""


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Broker]:
    settings = {"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory)}
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def make(broker: Broker, partitions: int) -> None:
    for number in range(partitions // PER_TOPIC):
        await broker.services.topics.create(f"topic-{number}", partitions=PER_TOPIC, replication_factor=1)


def test_a_partition_uses_little_memory(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker, PER_TOPIC)
        async with running(tmp_path) as broker:
            # The first topic loads the controller.
            await broker.services.topics.create("first")
            gc.collect()
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                for number in range(1, 1 + PARTITIONS // PER_TOPIC):
                    await broker.services.topics.create(
                        f"topic-{number}", partitions=PER_TOPIC, replication_factor=1
                    )
                gc.collect()
                after, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert (after - before) / PARTITIONS < BYTES_PER_PARTITION_MAX

    asyncio.run(run())


def test_idle_maintenance_jobs_do_not_touch_any_partition(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker, PARTITIONS)
            assert broker._running is not None
            upkeep = broker._running.maintenance
            jobs = {run.__name__: run for run, _ in upkeep._jobs}
            # These jobs examine each partition, but rarely: retention and expiry every few minutes, and
            # rolling a few thousand partitions per second.
            for name in ("_retention", "_expire_producers", "_roll_due", "_collect_garbage"):
                del jobs[name]
            assert len(jobs) == 6
            # The first run may have something to record, so only the second is counted.
            for counted in (False, True):
                calls: Counter[str] = Counter()

                def count(frame: FrameType, event: str, argument: Any, calls: Counter[str] = calls) -> None:
                    if event == "call":
                        calls[frame.f_code.co_qualname] += 1

                sys.setprofile(count)
                try:
                    for job in jobs.values():
                        steps = job(START_MS)
                        for _ in steps or ():
                            pass
                finally:
                    sys.setprofile(None)
                for directory in broker._log_dirs._directories.values():  # type: ignore[union-attr]
                    done = asyncio.Event()
                    directory.worker.submit(lambda: None, lambda _, done=done: done.set())  # type: ignore[misc]
                    await done.wait()
                if counted:
                    assert calls.total() < CALLS_MAX, calls.most_common(5)

    asyncio.run(run())


def test_a_checkpoint_includes_only_changed_high_watermarks(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker, 3 * PER_TOPIC)
            replicas = broker.services.replicas
            replicas.take_moved_high_watermarks()
            held = replicas.get("topic-1", 7)
            assert held is not None
            held.append(batch(4), START_MS)
            assert replicas.take_moved_high_watermarks() == {("topic-1", 7): 4}
            assert replicas.take_moved_high_watermarks() == {}

    asyncio.run(run())
