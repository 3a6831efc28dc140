"""Clusters with a metadata quorum, in one process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import until
from tests.quorum.cluster import QuorumCluster


async def test_three_combined_nodes_replicate_a_topic_and_keep_it_across_a_restart_of_all(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await until(lambda: cluster.leader("orders") > 0 and cluster.isr("orders") == {1, 2, 3})
    assert await cluster.produce(cluster.leader("orders"), "orders", b"one") == ErrorCode.NONE
    await cluster.stop()
    await cluster.start()
    await until(lambda: cluster.leader("orders") > 0)
    assert await cluster.produce(cluster.leader("orders"), "orders", b"two") == ErrorCode.NONE
    assert await cluster.values(cluster.leader("orders"), "orders") == [b"one", b"two"]
    await cluster.stop()


async def test_a_change_of_metadata_survives_the_loss_of_the_active_controller(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, controllers=3)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    leader_id = cluster.leader_id
    assert leader_id > 100
    await cluster.stop_controller(leader_id)
    assert await asyncio.wait_for(cluster.create_topic("orders"), 10) == ErrorCode.NONE
    assert cluster.leader_id not in (leader_id, -1)
    await cluster.start_controller(leader_id)
    leader = cluster.nodes[cluster.leader_id]
    await until(lambda: cluster.nodes[leader_id].applied == leader.applied)
    await cluster.stop()
