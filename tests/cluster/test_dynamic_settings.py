"""Dynamic settings: a change through one broker takes effect on all brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cluster.config_changes import announce
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import ConnectionLost, MetadataStore, Stat, Watch
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_compat.storage.directories.log_dirs import LoadReport
from tests.cluster.embedded import EmbeddedBroker, EmbeddedCluster, until
from tests.quorum.kinds import KINDS

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
Get = Callable[[str, Watch | None], Awaitable[tuple[bytes | None, Stat]]]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster: EmbeddedCluster = request.param(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def alter(
    cluster: EmbeddedCluster, broker_id: int, kind: int, entity: str, name: str, value: str | None
) -> None:
    operation = DELETE if value is None else SET
    change = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=entity, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = await cluster.send(broker_id, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert [item.error_code for item in response.responses] == [ErrorCode.NONE]


async def test_topic_settings_changed_through_another_broker_apply_on_the_leader(
    cluster: EmbeddedCluster,
) -> None:
    """The leader enforces a record size limit that was changed through a different broker."""
    await cluster.create_topic("t")
    leader = cluster.leader("t")
    other = next(broker_id for broker_id in cluster.brokers if broker_id != leader)
    await alter(cluster, other, TOPIC, "t", "max.message.bytes", "100")
    held = cluster.brokers[leader].replicas.get("t", 0)
    assert held is not None
    await until(lambda: held.log.config.max_message_bytes == 100)
    assert await cluster.produce(leader, "t", b"x" * 200) == ErrorCode.MESSAGE_TOO_LARGE
    await alter(cluster, other, TOPIC, "t", "max.message.bytes", None)
    await until(lambda: held.log.config.max_message_bytes > 100)
    assert await cluster.produce(leader, "t", b"x" * 200) == ErrorCode.NONE


async def test_broker_settings_apply_to_all_brokers_or_to_a_single_broker(cluster: EmbeddedCluster) -> None:
    def values() -> list[int]:
        return [broker.config.int("log.cleaner.threads") for _, broker in sorted(cluster.brokers.items())]

    await alter(cluster, 1, BROKER, "", "log.cleaner.threads", "2")
    await until(lambda: values() == [2, 2, 2])
    await alter(cluster, 3, BROKER, "3", "log.cleaner.threads", "1")
    await until(lambda: values() == [2, 2, 1])
    await alter(cluster, 2, BROKER, "", "log.cleaner.threads", None)
    await until(lambda: values() == [1, 1, 1])
    await cluster.stop_broker(2)
    await cluster.start_broker(2)
    await alter(cluster, 2, BROKER, "2", "log.cleaner.threads", "2")
    await until(lambda: values() == [1, 2, 1])


async def test_a_topic_setting_can_enable_unclean_elections(cluster: EmbeddedCluster) -> None:
    """The controller applies a change made through any broker, and elects a leader for the offline partition
    at once.
    """
    await cluster.create_topic("t", replicas=2)
    leader = cluster.leader("t")
    partition = cluster.controller.metadata.partition("t", 0)
    assert partition is not None
    (follower,) = set(partition.replicas) - {leader}
    (other,) = set(cluster.brokers) - set(partition.replicas)
    await cluster.stop_broker(follower, controlled=False)
    await until(lambda: cluster.isr("t") == {leader})
    await cluster.stop_broker(leader, controlled=False)
    await cluster.start_broker(follower)
    # A controller elected meanwhile announces the brokers first, and the topics afterwards.
    known = [broker.metadata for broker in cluster.brokers.values()]
    await until(
        lambda: [found.leader for item in known if (found := item.partition("t", 0))] == [-1, -1],
    )
    await alter(cluster, other, TOPIC, "t", "unclean.leader.election.enable", "true")
    await until(lambda: cluster.leader("t") == follower)


async def test_unreadable_topic_settings_are_read_again(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is created meanwhile must not lose records that the topic's settings would retain."""
    path, failures = "/config/topics/t", {broker_id: 2 for broker_id in cluster.brokers}
    for broker_id, broker in cluster.brokers.items():
        get = broker.store.get

        async def failing(
            wanted: str, watch: Watch | None = None, broker_id: int = broker_id, get: Get = get
        ) -> tuple[bytes | None, Stat]:
            if wanted == path and failures[broker_id]:
                failures[broker_id] -= 1
                raise ConnectionLost(wanted)
            return await get(wanted, watch)

        monkeypatch.setattr(broker.store, "get", failing)
    assert await cluster.create_topic("t", configs={"cleanup.policy": "compact"}) == ErrorCode.NONE
    await until(lambda: len(cluster.isr("t")) == len(cluster.brokers))
    assert not any(failures.values())
    for broker in cluster.brokers.values():
        assert broker.services.membership.topic_settings.overrides.log_config("t").compact


async def test_settings_changed_during_startup_take_effect(tmp_path: Path) -> None:
    """The broker has already read its settings, and does not yet receive change notices."""
    tree = EmbeddedMetadataStore(str(tmp_path / "journal"))

    async def connect() -> MetadataStore:
        return tree.connect()

    settings = {"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "logs")}
    broker = EmbeddedBroker(BrokerConfig.from_properties(settings), connect)
    membership: Any = broker.membership
    recover = membership.recover

    async def late_change(report: LoadReport, *, may_lack_topics: bool) -> None:
        other = tree.connect()
        path = znodes.config_path("brokers", znodes.DEFAULT_ENTITY)
        await other.put(path, znodes.encode_config({"log.cleaner.threads": "3"}))
        await announce(other, f"brokers/{znodes.DEFAULT_ENTITY}")
        await recover(report, may_lack_topics=may_lack_topics)

    membership.recover = late_change
    await broker.start()
    try:
        await until(lambda: broker.config.int("log.cleaner.threads") == 3)
    finally:
        await broker.stop()
        await tree.close()


async def test_group_settings_changed_through_one_broker_apply_on_all(cluster: EmbeddedCluster) -> None:
    def known(group_id: str) -> set[int]:
        return {
            broker.services.group_configs.consumer(group_id).session_timeout_ms
            for broker in cluster.brokers.values()
        }

    await alter(cluster, 1, GROUP, "a/b.c", "consumer.session.timeout.ms", "50000")
    await until(lambda: known("a/b.c") == {50_000})
    await cluster.brokers[2].stop()
    await cluster.start_broker(2)
    assert known("a/b.c") == {50_000}
    await alter(cluster, 3, GROUP, "a/b.c", "consumer.session.timeout.ms", None)
    await until(lambda: known("a/b.c") == {45_000})
