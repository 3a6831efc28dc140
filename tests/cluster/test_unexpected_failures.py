"""Unexpected exceptions: they do not stop the tasks that keep a broker in its cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.cluster import enrolment
from kafka_compat.cluster.shared_store import SharedStore
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.metadata_store import ConnectionLost, MetadataStore, Stat, Watch
from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import EmbeddedCluster, until
from tests.quorum.kinds import KINDS


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster: EmbeddedCluster = request.param(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def test_a_broker_registers_again_despite_failures(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrolment, "RECONNECT_S", 0.05)
    source = cluster.brokers[1].membership._source
    assert isinstance(source, SharedStore)
    connect = source._connect
    failures = [ValueError("of a node that nobody foresaw"), OSError(24, "EMFILE")]

    async def failing() -> MetadataStore:
        if failures:
            raise failures.pop()
        return await connect()

    monkeypatch.setattr(source, "_connect", failing)
    before = cluster.brokers[1].broker_epoch
    await cluster.expire_session(1)
    await until(lambda: cluster.brokers[1].broker_epoch > before)
    assert not failures
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))


async def test_unreadable_settings_are_read_again(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With default settings, a compacted topic would lose records by retention."""
    store = cluster.brokers[1].store
    path, get, losses = znodes.config_path("topics", "t"), store.get, [True]

    async def losing(asked: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        if asked == path and losses:
            losses.pop()
            raise ConnectionLost(asked)
        return await get(asked, watch)

    monkeypatch.setattr(store, "get", losing)
    assert await cluster.create_topic("t", configs={"cleanup.policy": "compact"}) == ErrorCode.NONE
    await until(lambda: cluster.brokers[1].replicas.get("t", 0) is not None)
    assert not losses
    held = cluster.brokers[1].replicas.get("t", 0)
    assert held is not None and held.log.config.compact and not held.log.config.delete


async def test_a_concurrent_read_of_settings_waits_for_the_pending_read(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = cluster.brokers[1].membership.topic_settings
    store = cluster.brokers[1].store
    await store.create(znodes.config_path("topics", "t"), znodes.encode_config({"cleanup.policy": "compact"}))
    get, asked, go = store.get, asyncio.Event(), asyncio.Event()

    async def slow(path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        asked.set()
        await go.wait()
        return await get(path, watch)

    monkeypatch.setattr(store, "get", slow)
    first = asyncio.create_task(settings.learn(["t"]))
    await asked.wait()
    second = asyncio.create_task(settings.learn(["t"]))
    assert not (await asyncio.wait([second], timeout=0.05))[0]
    go.set()
    await first
    await second
    assert settings.overrides.of("t") == {"cleanup.policy": "compact"}
    await store.delete(znodes.config_path("topics", "t"))


async def test_unreadable_settings_do_not_cause_deletions(cluster: EmbeddedCluster) -> None:
    store = cluster.brokers[1].store
    await store.create(znodes.config_path("topics", "t"), b"not JSON")
    assert await cluster.create_topic("other") == ErrorCode.NONE
    settings = cluster.brokers[1].membership.topic_settings
    await settings.learn(["t"])
    config = settings.overrides.log_config("t")
    assert (config.retention_ms, config.retention_bytes) == (-1, -1)
