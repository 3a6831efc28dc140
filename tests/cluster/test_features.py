"""Features (KIP-584): the /feature node, which the controller creates or enables, and the levels in
/kafka_compat/feature_levels, which the controller changes. Every broker reports both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.broker import StartupError
from kafka_compat.coordination.nodes import znodes
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.features import GROUP_VERSION, SHARE_VERSION, SUPPORTED, TRANSACTION_VERSION
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from kafka_compat.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.cluster.embedded import EmbeddedBroker, EmbeddedCluster, until
from tests.quorum.cluster import QuorumCluster
from tests.quorum.kinds import KINDS


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    is_on_quorum = request.param is QuorumCluster
    cluster = QuorumCluster(tmp_path, controllers=1) if is_on_quorum else EmbeddedCluster(tmp_path)
    yield cluster
    await cluster.stop()


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    """A cluster whose tree can be changed before the first broker starts."""
    cluster = EmbeddedCluster(tmp_path)
    yield cluster
    await cluster.stop()


async def start_one(cluster: EmbeddedCluster) -> EmbeddedBroker:
    """Start broker 1, and, on a quorum, the only controller."""
    if isinstance(cluster, QuorumCluster):
        await cluster.start_controller(101)
    return await cluster.start_broker(1)


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
    embedded: EmbeddedCluster,
) -> None:
    session = embedded.tree.connect()
    await session.create(znodes.FEATURE, znodes.encode_feature({}, enabled=False))
    await embedded.start()
    await until(lambda: known(embedded) == [1, 1, 1])
    assert (await session.get(znodes.FEATURE))[0] == znodes.encode_feature({})
    await session.close()


async def test_a_broker_that_does_not_support_a_finalized_feature_does_not_start(
    embedded: EmbeddedCluster,
) -> None:
    session = embedded.tree.connect()
    await session.create(znodes.FEATURE, znodes.encode_feature({"metadata.version": 21}))
    with pytest.raises(StartupError, match=r"metadata\.version at level 21"):
        await embedded.start_broker(1)
    await session.close()


async def test_a_broker_shuts_down_when_an_unsupported_feature_is_finalized(cluster: EmbeddedCluster) -> None:
    broker = await start_one(cluster)
    failed = []
    broker.on_fatal = lambda: failed.append(True)
    await broker.store.put(znodes.FEATURE, znodes.encode_feature({"group.version": 1}))
    await until(lambda: failed == [True])


async def test_an_unsupported_level_ends_a_broker_and_prevents_its_start(cluster: EmbeddedCluster) -> None:
    broker = await start_one(cluster)
    failed = []
    broker.on_fatal = lambda: failed.append(True)
    levels = znodes.encode_feature_levels({GROUP_VERSION: SUPPORTED[GROUP_VERSION] + 1})
    await broker.store.put(znodes.FEATURE_LEVELS, levels)
    await until(lambda: failed == [True])
    with pytest.raises(
        StartupError, match=r"feature_levels has finalized features .* group\.version at level 2"
    ):
        await cluster.start_broker(2)


async def test_malformed_levels_leave_the_levels_unchanged(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await start_one(cluster)
    await broker.store.put(znodes.FEATURE_LEVELS, znodes.encode_feature_levels({GROUP_VERSION: 0}))
    await until(lambda: broker.metadata.feature_level(GROUP_VERSION) == 0)
    await broker.store.set(znodes.FEATURE_LEVELS, b'{"version":1,"levels":{"group.version":"x"}}')
    await until(lambda: "the feature levels stay unchanged" in caplog.text)
    assert broker.metadata.feature_levels == {GROUP_VERSION: 0, TRANSACTION_VERSION: 2, SHARE_VERSION: 2}
    await broker.store.set(znodes.FEATURE_LEVELS, znodes.encode_feature_levels({GROUP_VERSION: 1}))
    await until(lambda: broker.metadata.feature_level(GROUP_VERSION) == 1)


def levels(cluster: EmbeddedCluster) -> list[tuple[int, int]]:
    """Return the levels of group.version and transaction.version that each broker knows."""
    return [
        (broker.metadata.feature_level(GROUP_VERSION), broker.metadata.feature_level(TRANSACTION_VERSION))
        for _, broker in sorted(cluster.brokers.items())
    ]


async def update(
    cluster: EmbeddedCluster, broker_id: int, feature: str, level: int, update_type: int = 1
) -> ErrorCode:
    change = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=update_type)
    request = UpdateFeaturesRequest(feature_updates=[change])
    response = await cluster.send(broker_id, ApiKey.UPDATE_FEATURES, 2, request)
    return ErrorCode(response.error_code)


async def test_all_brokers_know_a_level_that_the_controller_has_changed(tmp_path: Path) -> None:
    """With ZooKeeper, all levels are 0 until an operator raises them."""
    cluster = EmbeddedCluster(tmp_path, settings={"zookeeper.connect": "unused:2181"})
    await cluster.start()
    await until(lambda: known(cluster) == [0, 0, 0])
    assert levels(cluster) == [(0, 0)] * 3
    await until(lambda: cluster.brokers[1].metadata.controller_id in cluster.brokers)
    controller = cluster.brokers[1].metadata.controller_id
    other = next(each for each in cluster.brokers if each != controller)
    assert await update(cluster, other, GROUP_VERSION, 1) == ErrorCode.NOT_CONTROLLER
    assert await update(cluster, controller, GROUP_VERSION, 1) == ErrorCode.NONE
    assert await update(cluster, controller, TRANSACTION_VERSION, 2) == ErrorCode.NONE
    await until(lambda: levels(cluster) == [(1, 2)] * 3)
    assert known(cluster) == [2, 2, 2]
    await cluster.brokers[other].stop()
    await cluster.start_broker(other)
    assert levels(cluster) == [(1, 2)] * 3
    assert await update(cluster, controller, TRANSACTION_VERSION, 0) == ErrorCode.INVALID_UPDATE_VERSION
    assert await update(cluster, controller, TRANSACTION_VERSION, 0, 2) == ErrorCode.NONE
    await until(lambda: levels(cluster) == [(1, 0)] * 3)
    await cluster.stop()
