"""DeleteRecords in a cluster: when it succeeds, every live replica has deleted the records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.cluster.embedded import EmbeddedCluster, until

ALL = {1, 2, 3}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    assert await cluster.create_topic("t") == ErrorCode.NONE
    for number in range(5):
        assert await cluster.produce(cluster.leader("t"), "t", b"%d" % number) == ErrorCode.NONE
    yield cluster
    await cluster.stop()


async def delete(
    cluster: EmbeddedCluster, offset: int, timeout_ms: int = 10_000, topic: str = "t"
) -> DeleteRecordsPartitionResult:
    """Return the response of the leader of partition 0."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
            )
        ],
        timeout_ms=timeout_ms,
    )
    response = await cluster.send(cluster.leader(topic), ApiKey.DELETE_RECORDS, 2, request)
    result: DeleteRecordsPartitionResult = response.topics[0].partitions[0]
    return result


def starts(cluster: EmbeddedCluster) -> list[int]:
    """Return the log start offset of t-0 on every running broker."""
    held = [broker.replicas.get("t", 0) for broker in cluster.brokers.values()]
    return [partition.log.log_start_offset for partition in held if partition is not None]


def cut_off(cluster: EmbeddedCluster, topic: str = "t") -> int:
    """Stop fetching on a follower of partition 0, which stays alive, and return its id."""
    follower = next(iter(cluster.isr(topic) - {cluster.leader(topic)}))
    replicas = cluster.brokers[follower].replicas
    held = replicas.get(topic, 0)
    assert held is not None and replicas.fetching is not None
    replicas.fetching.stop(held)
    return follower


async def test_the_response_waits_until_all_followers_have_advanced_their_log_start_offsets(
    cluster: EmbeddedCluster,
) -> None:
    result = await delete(cluster, 3)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3)
    assert starts(cluster) == [3, 3, 3]
    result = await delete(cluster, -1)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 5)


async def test_the_response_waits_until_the_timeout_for_a_follower_that_does_not_fetch(
    cluster: EmbeddedCluster,
) -> None:
    cut_off(cluster)
    result = await delete(cluster, 3, timeout_ms=700)
    assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert sorted(starts(cluster)) == [0, 3, 3]


async def test_the_response_does_not_wait_for_a_dead_follower(cluster: EmbeddedCluster) -> None:
    """No other replica fetches, so the request must complete when the follower is removed."""
    assert await cluster.create_topic("pair", replicas=2) == ErrorCode.NONE
    leader = cluster.leader("pair")
    for _ in range(3):
        assert await cluster.produce(leader, "pair", b"x") == ErrorCode.NONE
    dead = cut_off(cluster, "pair")
    pending = asyncio.create_task(delete(cluster, 3, topic="pair"))
    await cluster.stop_broker(dead, controlled=False)
    result = await pending
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3)


async def test_waiting_requests_fail_when_the_leader_changes(cluster: EmbeddedCluster) -> None:
    leader = cluster.leader("t")
    cut_off(cluster)
    held = cluster.brokers[leader].replicas.get("t", 0)
    assert held is not None
    pending = asyncio.create_task(delete(cluster, 3))
    await until(lambda: held.log.log_start_offset == 3)
    held.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    result = await pending
    assert (result.error_code, result.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
