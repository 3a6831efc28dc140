"""Startup of a standalone broker with a malformed node in its metadata tree."""

from __future__ import annotations

import asyncio

import pytest

from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME
from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.restart.client import create_topic, delete_topic, produce, topic_of, values_of
from tests.support.servers import KafkaCompatBroker


def _write(broker: KafkaCompatBroker, path: str, data: bytes | None) -> bytes | None:
    """Write a node while the broker is down, and return the previous content."""

    async def write() -> bytes | None:
        tree = EmbeddedMetadataStore(str(broker.log_dir / JOURNAL_NAME))
        session = tree.connect()
        before, _ = await session.get(path)
        await session.set(path, data)
        await session.close()
        await tree.close()
        return before

    return asyncio.run(write())


@pytest.mark.parametrize(
    "path", ["/brokers/topics/victim", "/brokers/topics/victim/partitions/0/state", "/config/topics/victim"]
)
def test_a_malformed_node_affects_only_its_topic_until_repaired(broker: KafkaCompatBroker, path: str) -> None:
    with Connection(broker.address) as connection:
        for name in ("victim", "bystander"):
            create_topic(connection, name)
            assert produce(connection, name, [b"kept"]).error == ErrorCode.NONE
    broker.process.stop()
    before = _write(broker, path, b'{"partitions":5,"config":[]}')
    broker.start()
    settings = path.startswith("/config")
    with Connection(broker.address) as connection:
        assert values_of(connection, "bystander") == [b"kept"]
        create_topic(connection, "new")
        assert produce(connection, "new", [b"1"]).error == ErrorCode.NONE
        assert delete_topic(connection, "new") == ErrorCode.NONE
        assert (topic_of(connection, "victim") is not None) == settings
        if not settings:
            assert delete_topic(connection, "victim") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (broker.log_dir / "victim-0" / "00000000000000000000.log").stat().st_size > 0
    told = [line for line in broker.log.read_text().splitlines() if f"{path}: " in line]
    assert len(told) == 1

    broker.process.stop()
    _write(broker, path, before)
    broker.start()
    with Connection(broker.address) as connection:
        assert values_of(connection, "victim") == [b"kept"]
        assert produce(connection, "victim", [b"2"]).error == ErrorCode.NONE
