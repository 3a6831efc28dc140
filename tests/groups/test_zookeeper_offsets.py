"""OffsetCommit and OffsetFetch version 0, which store offsets in the metadata store of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.cluster.embedded import EmbeddedCluster, until


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def test_every_broker_commits_and_fetches_zookeeper_offsets(cluster: EmbeddedCluster) -> None:
    assert await cluster.create_topic("t") == ErrorCode.NONE
    await until(lambda: all("t" in broker.metadata.topics for broker in cluster.brokers.values()))
    for number, broker_id in enumerate(cluster.brokers):
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=40 + number, committed_metadata="text"
        )
        commit = OffsetCommitRequest(
            group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])]
        )
        committed = await cluster.send(broker_id, ApiKey.OFFSET_COMMIT, 0, commit)
        assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
    data, _ = await cluster.brokers[1].store.get("/consumers/g/offsets/t/0")
    assert data == b"42"
    fetch = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    )
    for broker_id in cluster.brokers:
        fetched = await cluster.send(broker_id, ApiKey.OFFSET_FETCH, 0, fetch)
        assert fetched.topics[0].partitions[0].committed_offset == 42
