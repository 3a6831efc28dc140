"""Metadata describes the partitions of a topic once, until the topic or the brokers change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.handlers.metadata import _topic
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.metadata import MetadataRequest
from tests.conformance.wire import Connection


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    config = BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "broker.id": "1"}
    )
    broker = standalone_broker(config)
    await broker.start()
    yield broker
    await broker.stop()


async def leaders(broker: Broker) -> dict[str, list[int]]:
    """Ask for all topics, and return the leaders of their partitions."""
    host, port = broker.addresses["PLAINTEXT"]
    connection = await asyncio.to_thread(Connection, f"{host}:{port}")
    answer = await asyncio.to_thread(connection.ask, ApiKey.METADATA, 8, {"topics": None})
    connection.close()
    return {
        topic["name"]: [partition["leader_id"] for partition in topic["partitions"]]
        for topic in answer["topics"]
    }


async def test_partitions_are_described_again_after_a_change(broker: Broker) -> None:
    topics, metadata = broker.services.topics, broker.services.metadata
    await topics.create("t", partitions=100, replication_factor=1)
    assert await leaders(broker) == {"t": [1] * 100}
    described = metadata.answers["t"]
    assert await leaders(broker) == {"t": [1] * 100}
    await topics.create("u", partitions=1, replication_factor=1)
    assert await leaders(broker) == {"t": [1] * 100, "u": [1]}
    assert metadata.answers["t"] is described
    await topics.create_partitions("u", 3, None, validate_only=False)
    assert await leaders(broker) == {"t": [1] * 100, "u": [1] * 3}
    topics.forget_leaders([("u", 1)])
    assert await leaders(broker) == {"t": [1] * 100, "u": [1, -1, 1]}
    await topics.delete("t")
    assert await leaders(broker) == {"u": [1, -1, 1]}
    assert metadata.answers.keys() == {"u"}
    change = metadata.change()
    change.set_brokers({})
    change.publish()
    assert not metadata.answers


async def test_an_answer_that_was_begun_before_a_change_is_not_kept(broker: Broker) -> None:
    """A long response is built in steps, and the metadata may change between two steps."""
    await broker.services.topics.create("t", partitions=5_000, replication_factor=1)
    topics, metadata = broker.services.topics, broker.services.metadata
    before = metadata.topics["t"]
    steps = _topic(SimpleNamespace(services=broker.services), MetadataRequest(), before)  # type: ignore[arg-type]
    next(steps)
    topics.forget_leaders([("t", 4_999)])
    for _ in steps:
        pass
    assert "t" not in metadata.answers
    assert await leaders(broker) == {"t": [1] * 4_999 + [-1]}
