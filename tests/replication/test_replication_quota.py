"""Replication throttles (KIP-73): the computation of rates, the throttled replicas, and Kafka's own tool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_compat.replication.replication_quota import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ReplicationQuota,
)
from tests.cluster.embedded import EmbeddedCluster, until
from tests.support import java

TOPIC, BROKER = 2, 4
ALL_BROKERS = ""
MEGABYTE = 1_000_000


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.mark.parametrize(
    ("setting", "throttled"),
    [
        ("", set()),
        ("*", {0, 1, 2}),
        ("0:1,1:2,2:1", {0, 2}),
        ("1:11", set()),
    ],
)
def test_a_broker_throttles_the_replicas_listed_with_its_id(setting: str, throttled: set[int]) -> None:
    quota = ReplicationQuota()
    quota.throttle("t", setting, 1)
    assert {index for index in range(3) if quota.is_throttled("t", index)} == throttled
    assert not quota.is_throttled("u", 0)
    quota.throttle("t", "", 1)
    assert not quota.is_throttled("t", 0)


def test_the_rate_is_measured_over_at_least_one_window_and_decays() -> None:
    quota = ReplicationQuota(windows=11, window_ms=1000)
    quota.bytes_per_s = 100
    quota.record(100, 50_000)
    assert not quota.is_exceeded(50_000)
    quota.record(300, 50_500)
    assert quota.is_exceeded(50_500)
    assert quota.is_exceeded(53_999)
    assert not quota.is_exceeded(54_000)


def test_one_large_batch_throttles_a_replica_until_all_windows_have_passed() -> None:
    quota = ReplicationQuota(windows=11, window_ms=1000)
    quota.bytes_per_s = 1
    quota.record(10**9, 50_000)
    assert quota.is_exceeded(60_999)
    assert not quota.is_exceeded(61_000)


def test_replicas_are_not_throttled_without_a_quota() -> None:
    quota = ReplicationQuota()
    quota.record(10**15, 50_000)
    assert not quota.is_exceeded(50_000)


async def alter(cluster: EmbeddedCluster, kind: int, name: str, settings: dict[str, str]) -> None:
    configs = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in settings.items()]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)]
    )
    # The controller may have been stopped.
    await until(lambda: any(broker.controller.is_active for broker in cluster.brokers.values()))
    response = await cluster.send(cluster.controller.broker_id, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert response.responses[0].error_code == 0


async def throttle(cluster: EmbeddedCluster, topic: str, *rates: str) -> None:
    """Throttle all replicas of a topic to one byte per second on all brokers."""
    await alter(cluster, TOPIC, topic, {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"})
    await alter(cluster, BROKER, ALL_BROKERS, dict.fromkeys(rates, "1"))
    for broker in cluster.brokers.values():
        quotas = broker.replicas.quotas
        await until(lambda: quotas.leader.is_throttled(topic, 0))  # noqa: B023
        await until(lambda: 1 in (quotas.leader.bytes_per_s, quotas.follower.bytes_per_s))  # noqa: B023


async def test_in_sync_replicas_are_not_throttled(cluster: EmbeddedCluster) -> None:
    assert await cluster.create_topic("t") == ErrorCode.NONE
    leader = cluster.leader("t")
    assert await cluster.produce(leader, "t", b"first") == ErrorCode.NONE
    await throttle(cluster, "t", LEADER_RATE, FOLLOWER_RATE)
    for _ in range(10):
        assert await cluster.produce(leader, "t", b"x" * 1000) == ErrorCode.NONE
    assert cluster.isr("t") == {1, 2, 3}


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_an_out_of_sync_replica_is_throttled_by_the_quota_of_leader_or_follower(
    cluster: EmbeddedCluster, side: str
) -> None:
    await cluster.create_topic("t")
    leader = cluster.leader("t")
    behind = next(broker_id for broker_id in cluster.brokers if broker_id != leader)
    await cluster.stop_broker(behind, controlled=False)
    for _ in range(3):
        assert await cluster.produce(leader, "t", b"x" * 400_000, acks=1) == ErrorCode.NONE
    rate = LEADER_RATE if side == "leader" else FOLLOWER_RATE
    await throttle(cluster, "t", rate)
    broker = await cluster.start_broker(behind)
    quota = getattr((cluster.brokers[leader] if side == "leader" else broker).replicas.quotas, side)
    await until(lambda: quota.is_exceeded(broker.services.clock.monotonic_ms()))
    await until(lambda: broker.replicas.get("t", 0) is not None)
    held = broker.replicas.get("t", 0)
    assert held is not None
    await asyncio.sleep(1)  # an unthrottled replica would catch up within this time
    assert held.log.log_end_offset < 3
    assert behind not in cluster.isr("t")
    await alter(cluster, BROKER, ALL_BROKERS, {rate: str(2**62)})
    await until(lambda: cluster.isr("t") == {1, 2, 3})


async def test_kafka_reassign_partitions_throttles_a_move(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    await cluster.create_topic("t", replicas=2)
    leader = cluster.leader("t")
    follower = next(iter(cluster.isr("t") - {leader}))
    (target,) = cluster.brokers.keys() - {leader, follower}
    size_bytes, bytes_per_s = 4 * MEGABYTE, MEGABYTE
    for _ in range(size_bytes // 200_000):
        assert await cluster.produce(leader, "t", b"x" * 200_000) == ErrorCode.NONE
    plan = tmp_path / "plan.json"
    partition = {"topic": "t", "partition": 0, "replicas": [leader, target]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    host, port = cluster.brokers[1].addresses["PLAINTEXT"]

    async def tool(*arguments: str) -> str:
        common = ("--bootstrap-server", f"{host}:{port}", "--reassignment-json-file", str(plan))
        done = await asyncio.to_thread(java.run, "kafka-reassign-partitions", *common, *arguments)
        return done.stdout

    loop = asyncio.get_running_loop()
    moving = asyncio.create_task(tool("--execute", "--throttle", str(bytes_per_s)))
    brokers = cluster.brokers
    await until(lambda: brokers[target].replicas.get("t", 0) is not None, 60)
    begun = loop.time()
    await until(lambda: cluster.isr("t") == {leader, target}, 60)
    elapsed_s = loop.time() - begun
    assert "The inter-broker throttle limit was set to 1000000 B/s" in await moving
    expected_s = size_bytes / bytes_per_s
    assert expected_s / 2 < elapsed_s < 3 * expected_s
    said = await tool("--verify")
    assert "Reassignment of partition t-0 is completed." in said
    assert "Clearing topic-level throttles on topic t" in said
    await until(lambda: not any(broker.replicas.quotas.leader.has_replicas for broker in brokers.values()))
