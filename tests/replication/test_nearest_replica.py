"""A consumer's fetch session at the leader when a follower in its rack appears (KIP-392, KIP-227)."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.cluster.embedded import EmbeddedCluster, until

RACK = "everywhere"


async def test_a_fetch_session_without_other_changes_reports_a_nearer_replica(tmp_path: Path) -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    cluster = EmbeddedCluster(tmp_path, settings={"replica.selector.class": selector})
    await cluster.start()
    try:
        assert await cluster.create_topic("t", replicas=2) == ErrorCode.NONE
        leader = cluster.leader("t")
        follower = next(iter(cluster.isr("t") - {leader}))
        assert await cluster.produce(leader, "t", b"x") == ErrorCode.NONE
        brokers = cluster.brokers[leader].metadata.brokers
        partition = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=0,
            session_epoch=0,
            rack_id=RACK,
            topics=[FetchTopic(topic="t", topic_id=UUID(int=0), partitions=[partition])],
        )
        held = cluster.brokers[leader].replicas.get("t", 0)
        assert held is not None
        await until(lambda: held.high_watermark == 1)
        first = await cluster.send(leader, ApiKey.FETCH, 11, request)
        assert first.responses[0].partitions[0].preferred_read_replica == -1

        # Simulate that the follower registered again in the consumer's rack.
        brokers[follower] = brokers[follower]._replace(rack=RACK)
        request.topics = []
        request.session_id, request.session_epoch = first.session_id, 1
        second = await cluster.send(leader, ApiKey.FETCH, 11, request)
        assert second.responses[0].partitions[0].preferred_read_replica == follower
    finally:
        await cluster.stop()
