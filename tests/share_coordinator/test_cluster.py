"""The persisters of three brokers, while share coordinators move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.share_coordinator.persister import (
    Persister,
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)
from kafka_compat.share_coordinator.records import coordinator_key
from tests.cluster.embedded import EmbeddedCluster, until

PARTITIONS = 6
SHARDS = 3
BATCH = StateBatch(0, 9, 2, 1)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    settings = {
        "share.coordinator.state.topic.num.partitions": str(SHARDS),
        "share.coordinator.snapshot.update.records.per.snapshot": "5",
    }
    cluster = EmbeddedCluster(tmp_path, settings=settings)
    await cluster.start()
    assert await cluster.create_topic("topic", PARTITIONS) == ErrorCode.NONE
    yield cluster
    await cluster.stop()


def persister(cluster: EmbeddedCluster, broker_id: int) -> Persister:
    return cluster.brokers[broker_id].services.persister


def keys(cluster: EmbeddedCluster) -> list[SharePartitionKey]:
    topic_id = next(iter(cluster.brokers.values())).metadata.topics["topic"].topic_id
    return [SharePartitionKey("group", topic_id, index) for index in range(PARTITIONS)]


def coordinator(cluster: EmbeddedCluster, key: SharePartitionKey) -> int:
    return cluster.leader(SHARE_STATE_TOPIC, shard_of(coordinator_key(*key), SHARDS))


def _future() -> asyncio.Future[ErrorCode]:
    return asyncio.get_running_loop().create_future()


def initialize(of: Persister, key: SharePartitionKey) -> asyncio.Future[ErrorCode]:
    found = _future()
    of.initialize(key, 1, 0, found.set_result)
    return found


def write(of: Persister, key: SharePartitionKey, number: int) -> asyncio.Future[ErrorCode]:
    """Acknowledge ten records."""
    found = _future()
    batch = StateBatch(10 * number, 10 * number + 9, 2, 1)
    of.write(key, 1, 0, -1, -1, [batch], found.set_result)
    return found


async def read(of: Persister, key: SharePartitionKey) -> StoredState | None:
    found: asyncio.Future[StoredState | None] = asyncio.get_running_loop().create_future()

    def done(error: ErrorCode, state: StoredState | None) -> None:
        assert not error
        found.set_result(state)

    of.read(key, 0, done)
    return await found


async def progress(of: Persister, key: SharePartitionKey) -> StateSummary | None:
    found: asyncio.Future[StateSummary | None] = asyncio.get_running_loop().create_future()

    def done(error: ErrorCode, summary: StateSummary | None) -> None:
        assert not error
        found.set_result(summary)

    of.read_summary(key, done)
    return await found


async def test_each_broker_reaches_the_coordinators_of_all_share_partitions(cluster: EmbeddedCluster) -> None:
    errors = await asyncio.gather(*(initialize(persister(cluster, 1), key) for key in keys(cluster)))
    assert set(errors) == {ErrorCode.NONE}
    assert len({coordinator(cluster, key) for key in keys(cluster)}) > 1
    for broker_id in cluster.brokers:
        of = persister(cluster, broker_id)
        # Operations on the same share-partition overlap, and requests are combined.
        numbers = range(4 * broker_id, 4 * broker_id + 4)
        errors = await asyncio.gather(
            *(write(of, key, number) for number in numbers for key in keys(cluster))
        )
        assert set(errors) == {ErrorCode.NONE}
    for broker_id in cluster.brokers:
        for key in keys(cluster):
            state = await read(persister(cluster, broker_id), key)
            assert state == StoredState(1, 0, (StateBatch(40, 159, 2, 1),))
            assert await progress(persister(cluster, broker_id), key) == StateSummary(1, 0, 0, 0)


async def test_no_stored_state_is_lost_when_coordinators_fail(cluster: EmbeddedCluster) -> None:
    await asyncio.gather(*(initialize(persister(cluster, 1), key) for key in keys(cluster)))
    victim = next(
        broker_id for key in keys(cluster) if (broker_id := coordinator(cluster, key)) not in (-1, 1)
    )
    stopping = asyncio.ensure_future(cluster.stop_broker(victim, controlled=False))
    numbers = range(30)
    errors = await asyncio.gather(
        *(write(persister(cluster, 1), key, number) for number in numbers for key in keys(cluster))
    )
    await stopping
    assert set(errors) == {ErrorCode.NONE}
    for key in keys(cluster):
        assert await read(persister(cluster, 1), key) == StoredState(1, 0, (StateBatch(0, 299, 2, 1),))
    await cluster.start_broker(victim)
    await until(lambda: all(cluster.isr(SHARE_STATE_TOPIC, shard) == {1, 2, 3} for shard in range(SHARDS)))
    other = next(broker_id for broker_id in cluster.brokers if broker_id not in (1, victim))
    await cluster.stop_broker(other)
    for key in keys(cluster):
        state = await read(persister(cluster, victim), key)
        assert state == StoredState(1, 0, (StateBatch(0, 299, 2, 1),))


async def test_pending_operations_end_when_the_broker_stops(cluster: EmbeddedCluster) -> None:
    key = keys(cluster)[0]
    await initialize(persister(cluster, 1), key)
    leader = coordinator(cluster, key)
    caller = next(broker_id for broker_id in cluster.brokers if broker_id != leader)
    of = persister(cluster, caller)
    pending = [write(of, key, number) for number in range(3)]
    await cluster.stop_broker(caller, controlled=False)
    errors = await asyncio.wait_for(asyncio.gather(*pending), 10)
    assert set(errors) <= {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert await asyncio.wait_for(write(of, key, 9), 10) is ErrorCode.COORDINATOR_NOT_AVAILABLE
