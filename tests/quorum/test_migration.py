"""Metadata that moves from a store in place of ZooKeeper to a quorum, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.coordination.nodes.store_marker import StoreName
from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import until
from tests.quorum.migrating import MigratingCluster, nodes_of

_ROOTS = ("/brokers/topics", "/config/topics", "/config/brokers", "/cluster", "/latest_producer_id_block")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[MigratingCluster]:
    cluster = MigratingCluster(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def test_a_cluster_moves_to_the_quorum_and_back(cluster: MigratingCluster) -> None:
    assert await cluster.create_topic("orders", configs={"retention.ms": "123456"}) == ErrorCode.NONE
    await until(lambda: cluster.leader("orders") > 0 and cluster.isr("orders") == {1, 2, 3})
    assert await cluster.produce(cluster.leader("orders"), "orders", b"zookeeper") == ErrorCode.NONE
    leader = cluster.leader("orders")
    source = await cluster.session_in(StoreName.ZOOKEEPER)

    await cluster.request_move(StoreName.QUORUM)
    await until(lambda: cluster.is_in(StoreName.QUORUM), 30)
    target = await cluster.session_in(StoreName.QUORUM)
    assert await nodes_of(source, _ROOTS) == await nodes_of(target, _ROOTS)
    await target.close()  # It may belong to the broker that is stopped below.
    assert cluster.leader("orders") == leader
    assert await cluster.produce(leader, "orders", b"quorum") == ErrorCode.NONE
    assert await cluster.create_topic("new") == ErrorCode.NONE
    assert cluster.brokers[2].overrides("orders") == {"retention.ms": "123456"}
    # A failover works: partition epochs have gone on.
    await cluster.stop_broker(leader)
    await until(lambda: cluster.leader("orders") not in (-1, leader))
    await cluster.start_broker(leader)
    await until(lambda: cluster.isr("orders") == {1, 2, 3})

    await cluster.request_move(StoreName.ZOOKEEPER)
    await until(lambda: cluster.is_in(StoreName.ZOOKEEPER), 30)
    target = await cluster.session_in(StoreName.QUORUM)
    assert await nodes_of(source, _ROOTS) == await nodes_of(target, _ROOTS)
    assert await cluster.produce(cluster.leader("orders"), "orders", b"back") == ErrorCode.NONE
    assert await cluster.create_topic("newer") == ErrorCode.NONE
    values = await cluster.values(cluster.leader("orders"), "orders")
    assert values == [b"zookeeper", b"quorum", b"back"]
    await source.close()
    await target.close()
