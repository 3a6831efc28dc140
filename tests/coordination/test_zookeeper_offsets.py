"""Offsets that version 0 of OffsetCommit stores in the metadata store: written and read on each store."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.zookeeper_offsets import NO_OFFSET, ZooKeeperOffsets
from kafka_compat.metadata.cache import MetadataCache, PartitionMetadata, TopicMetadata
from tests.coordination.stores import Stores


@pytest.fixture
def metadata() -> MetadataCache:
    """Metadata of a topic with one partition."""
    metadata = MetadataCache("c", 1)
    metadata.put_topic(TopicMetadata("t", UUID(int=1), (PartitionMetadata(0, 1, 0, (1,), (1,), 0),)))
    return metadata


@pytest.mark.parametrize("group", ["g", "a group", "a/deeper", "größer"])
async def test_a_committed_offset_is_stored_as_text_in_a_node(
    stores: Stores, metadata: MetadataCache, group: str
) -> None:
    store = await stores.connect()
    offsets = ZooKeeperOffsets(store, metadata, 10)
    assert await offsets.fetch(group, "t", 0) == (NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for offset in (7, 5):
        assert await offsets.commit(group, "t", 0, offset, None) == ErrorCode.NONE
    data, _ = await store.get(f"/consumers/{group}/offsets/t/0")
    assert data == b"5"
    another = ZooKeeperOffsets(await stores.connect(), metadata, 10)
    assert await another.fetch(group, "t", 0) == (5, ErrorCode.NONE)


@pytest.mark.parametrize("group", ["", ".", "..", "/g", "g/", "a//b", "a\x00b", "😀"])
async def test_group_ids_that_cannot_be_node_paths_are_rejected(
    stores: Stores, metadata: MetadataCache, group: str
) -> None:
    offsets = ZooKeeperOffsets(await stores.connect(), metadata, 10)
    assert await offsets.commit(group, "t", 0, 7, None) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await offsets.fetch(group, "t", 0) == (NO_OFFSET, ErrorCode.UNKNOWN_SERVER_ERROR)


async def test_unknown_partitions_and_long_metadata_are_rejected(
    stores: Stores, metadata: MetadataCache
) -> None:
    store = await stores.connect()
    offsets = ZooKeeperOffsets(store, metadata, 10)
    assert await offsets.commit("g", "t", 1, 7, None) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await offsets.commit("g", "u", 0, 7, None) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await offsets.commit("g", "t", 0, 7, "x" * 11) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await offsets.commit("g", "t", 0, 7, "x" * 10) == ErrorCode.NONE
    await store.put("/consumers/g/offsets/t/0", b"seven")
    assert await offsets.fetch("g", "t", 0) == (NO_OFFSET, ErrorCode.UNKNOWN_SERVER_ERROR)
