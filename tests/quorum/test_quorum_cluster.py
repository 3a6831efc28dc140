"""A cluster of three nodes with both roles, in one process."""

from __future__ import annotations

from pathlib import Path

from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import until
from tests.quorum.cluster import QuorumCluster


async def test_three_combined_nodes_replicate_a_topic(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await until(lambda: cluster.leader("orders") > 0 and cluster.isr("orders") == {1, 2, 3})
    assert await cluster.produce(cluster.leader("orders"), "orders", b"one") == ErrorCode.NONE
    assert await cluster.values(cluster.leader("orders"), "orders") == [b"one"]
    await cluster.stop()
