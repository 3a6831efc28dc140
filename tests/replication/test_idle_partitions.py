"""Idle partitions, which followers omit from fetch requests and the leader skips."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.cluster.embedded import EmbeddedCluster, until

LEADER, FOLLOWERS = 1, (2, 3)
LONG_WAIT = {"replica.fetch.wait.max.ms": "60000", "replica.lag.time.max.ms": "90000"}
"""These times are so long that no test passes only because a wait times out or all partitions are checked."""


@pytest.fixture
async def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path, settings=getattr(request, "param", {}))
    await cluster.start()
    for topic in ("busy", "quiet"):
        assert await cluster.create_topic(topic, assignment=(LEADER, *FOLLOWERS)) == ErrorCode.NONE
        await until(lambda: cluster.leader(topic) == LEADER)  # noqa: B023
    # This ends the fetches that started waiting before the second topic was created.
    assert await cluster.produce(LEADER, "busy", b"first", timeout_ms=10_000) == ErrorCode.NONE
    yield cluster
    await cluster.stop()


async def test_an_idle_partition_stays_in_sync_alongside_a_busy_partition(cluster: EmbeddedCluster) -> None:
    assert await cluster.produce(LEADER, "quiet", b"0") == ErrorCode.NONE
    partition = cluster.brokers[LEADER].replicas.get("quiet", 0)
    assert partition is not None
    clock = cluster.brokers[LEADER].services.clock
    began_ms = clock.monotonic_ms()
    while clock.monotonic_ms() < began_ms + 2000:
        assert await cluster.produce(LEADER, "busy", b"x") == ErrorCode.NONE
        await asyncio.sleep(0.01)  # interval between records
    for follower in FOLLOWERS:
        state = partition.in_sync.followers[follower]
        assert clock.monotonic_ms() - state.last_caught_up_ms < 1000
    assert set(partition.isr) == {LEADER, *FOLLOWERS}


@pytest.mark.parametrize("cluster", [LONG_WAIT], indirect=True)
async def test_a_record_after_a_long_idle_period_is_acknowledged_immediately(
    cluster: EmbeddedCluster,
) -> None:
    for number in range(20):
        assert await cluster.produce(LEADER, "busy", b"%d" % number, timeout_ms=10_000) == ErrorCode.NONE
    assert await cluster.produce(LEADER, "quiet", b"late", timeout_ms=10_000) == ErrorCode.NONE
    # The next response for any partition contains the high watermark.
    assert await cluster.produce(LEADER, "busy", b"last", timeout_ms=10_000) == ErrorCode.NONE
    for follower in FOLLOWERS:
        held = cluster.brokers[follower].replicas.get("quiet", 0)
        assert held is not None
        await until(lambda: held.high_watermark == 1)  # noqa: B023


@pytest.mark.parametrize("cluster", [LONG_WAIT], indirect=True)
async def test_a_new_log_start_offset_is_sent_immediately(cluster: EmbeddedCluster) -> None:
    """DeleteRecords waits until the followers have it."""
    for _ in range(3):
        assert await cluster.produce(LEADER, "quiet", b"x") == ErrorCode.NONE
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name="quiet", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
        ],
        timeout_ms=10_000,
    )
    # Use a separate connection, because later requests on the same connection would wait for this one.
    client = BrokerClient(*cluster.brokers[LEADER].addresses["PLAINTEXT"], "test")
    deleting = asyncio.create_task(client.send(ApiKey.DELETE_RECORDS, 2, request))
    # Records wake the waiting fetches: their responses contain the new log start offset, and the followers'
    # next requests confirm it.
    while not deleting.done():
        assert await cluster.produce(LEADER, "busy", b"x") == ErrorCode.NONE
        await asyncio.sleep(0.01)  # interval between records
    await client.close()
    assert deleting.result().topics[0].partitions[0].error_code == ErrorCode.NONE
