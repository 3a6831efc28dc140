"""The /feature node (KIP-584): created or enabled by the controller, and reported by every broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.broker import StartupError
from kafka_compat.coordination.nodes import znodes
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from tests.cluster.embedded import EmbeddedCluster, until


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    yield cluster
    await cluster.stop()


async def epochs(cluster: EmbeddedCluster) -> list[int]:
    """Return the finalized features epoch in each broker's ApiVersions response."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return [
        (await cluster.send(broker_id, ApiKey.API_VERSIONS, 3, request)).finalized_features_epoch
        for broker_id in sorted(cluster.brokers)
    ]


def known(cluster: EmbeddedCluster) -> list[int]:
    return [
        broker.services.metadata.finalized_features_epoch for _, broker in sorted(cluster.brokers.items())
    ]


async def test_the_controller_creates_the_feature_node(cluster: EmbeddedCluster) -> None:
    await cluster.start()
    await until(lambda: known(cluster) == [0, 0, 0])
    assert await epochs(cluster) == [0, 0, 0]
    await cluster.brokers[1].store.set(znodes.FEATURE, znodes.encode_feature({}))
    await until(lambda: known(cluster) == [1, 1, 1])
    await cluster.brokers[1].store.set(znodes.FEATURE, znodes.encode_feature({}, enabled=False))
    await until(lambda: known(cluster) == [-1, -1, -1])


async def test_a_controller_enables_features_that_an_older_controller_disabled(
    cluster: EmbeddedCluster,
) -> None:
    session = cluster.tree.connect()
    await session.create(znodes.FEATURE, znodes.encode_feature({}, enabled=False))
    await cluster.start()
    await until(lambda: known(cluster) == [1, 1, 1])
    assert (await session.get(znodes.FEATURE))[0] == znodes.encode_feature({})
    await session.close()


async def test_a_broker_that_does_not_support_a_finalized_feature_does_not_start(
    cluster: EmbeddedCluster,
) -> None:
    session = cluster.tree.connect()
    await session.create(znodes.FEATURE, znodes.encode_feature({"metadata.version": 21}))
    with pytest.raises(StartupError, match=r"metadata\.version at level 21"):
        await cluster.start_broker(1)
    await session.close()


async def test_a_broker_shuts_down_when_an_unsupported_feature_is_finalized(cluster: EmbeddedCluster) -> None:
    broker = await cluster.start_broker(1)
    failed = []
    broker.on_fatal = lambda: failed.append(True)
    await broker.store.put(znodes.FEATURE, znodes.encode_feature({"group.version": 1}))
    await until(lambda: failed == [True])
