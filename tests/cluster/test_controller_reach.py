"""Brokers of a quorum name themselves as the controller when the controller's process has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.api.caller import Session
from kafka_compat.cluster.controller_reach import ControllerReach
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.tasks import Tasks
from tests.cluster.embedded import until
from tests.quorum.cluster import PATIENT, QuorumCluster
from tests.support.ports import free_port


class _Broker:
    """Broker 1, to which the controller, broker 2, is connected."""

    def __init__(self, port: int) -> None:
        self.tasks = Tasks()
        self.metadata = MetadataCache("c", 1)
        change = self.metadata.change()
        change.set_controller(2)
        change.publish()
        self.reach = ControllerReach(self.metadata, {2: ("127.0.0.1", port)}.get, self.tasks)
        self.session = Session()
        self.reach.called(self.session, 2)

    def lose_connection(self) -> None:
        self.session.leave()

    async def look(self) -> None:
        """Wait until the broker knows whether the controller accepts connections."""
        await self.tasks.finish()


@pytest.fixture
async def listening_port() -> AsyncIterator[int]:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_a_broker_names_itself_if_nothing_listens_at_the_controllers_address() -> None:
    broker = _Broker(free_port())
    generation = broker.metadata.generation
    assert broker.metadata.controller_for_clients == 2
    broker.lose_connection()
    assert broker.metadata.controller_for_clients == 1
    assert broker.metadata.generation > generation
    await broker.look()
    assert broker.metadata.controller_for_clients == 1
    change = broker.metadata.change()
    change.set_controller(2)
    assert broker.metadata.controller_for_clients == 2


async def test_a_controller_that_only_closed_its_connection_is_still_named(listening_port: int) -> None:
    broker = _Broker(listening_port)
    broker.lose_connection()
    await broker.look()
    assert broker.metadata.controller_for_clients == 2


async def test_the_former_controller_does_not_matter() -> None:
    broker = _Broker(free_port())
    broker.metadata.change().set_controller(3)
    broker.lose_connection()
    assert broker.metadata.controller_for_clients == 3


async def test_every_broker_of_a_quorum_creates_topics_when_the_controllers_process_has_ended(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path, settings=PATIENT)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    controller_id = cluster.brokers[1].metadata.controller_id
    other = next(broker for broker_id, broker in cluster.brokers.items() if broker_id != controller_id)
    with pytest.raises(KafkaError) as refused:
        await other.services.topics.create("orders", partitions=2, replication_factor=2)
    assert refused.value.code == ErrorCode.NOT_CONTROLLER
    other.metadata.set_controller_left(True)
    created = await other.services.topics.create("orders", partitions=2, replication_factor=2)
    assert [partition.leader > 0 for partition in created.partitions] == [True, True]
    await cluster.stop()


async def test_the_creation_of_a_topic_does_not_wait_for_leaders_on_brokers_that_have_died(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path, count=1, controllers=1)
    await cluster.start()
    broker = cluster.brokers[1]
    await until(lambda: broker.metadata.controller_id == 1)
    assigned = {0: (1,), 1: (9,)}
    created = await broker.services.topics.create("orders", assignments=assigned, timeout_ms=60_000)
    assert [partition.replicas for partition in created.partitions] == [(1,), (9,)]
    await cluster.stop()
