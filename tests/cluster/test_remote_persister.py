"""Requests to share coordinators on other brokers: which operations they contain, and how they end."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from kafka_compat.cluster.peers import Peers
from kafka_compat.cluster.remote_persister import PARTITIONS_MAX, RemoteShareCoordinators
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.share_coordinator.messages import API_OF, WRITE
from kafka_compat.share_coordinator.operations import Delete, Operation, Result, Write
from kafka_compat.share_coordinator.persister import SharePartitionKey
from tests.cluster.embedded import until

TOPIC = UUID(int=7)
BROKER = 2
WRITTEN = Write(1, 1, -1, -1, ())


class Peer(Peers):
    """A broker that responds when the test says so."""

    def __init__(self) -> None:
        super().__init__(lambda _: None, "test", 1_000)
        self.asked: list[tuple[Any, asyncio.Future[Any]]] = []

    def client(self, broker_id: int) -> Any:
        assert broker_id == BROKER
        return self

    async def send(self, api_key: ApiKey, version: int, request: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append((request, answer))
        return await answer

    def partitions(self) -> list[int]:
        """Return the partitions of the only pending request."""
        ((request, _),) = self.asked
        return [part.partition for topic in request.topics for part in topic.partitions]

    def respond(self, error: ErrorCode = ErrorCode.NONE) -> None:
        request, answer = self.asked.pop(0)
        response = WRITE.response()
        for topic in request.topics:
            results = [WRITE.partition_result(part.partition, Result(error)) for part in topic.partitions]
            response.results.append(WRITE.topic_result(topic_id=topic.topic_id, partitions=results))
        answer.set_result(response)


class World:
    def __init__(self) -> None:
        self.peer = Peer()
        self.remote = RemoteShareCoordinators(self.peer)
        self.results: list[tuple[int, ErrorCode]] = []

    def send(self, partition: int, operation: Operation = WRITTEN, group: str = "g") -> None:
        key = SharePartitionKey(group, TOPIC, partition)
        self.remote.send(
            BROKER, key, operation, lambda result: self.results.append((partition, result.error))
        )

    async def asks(self, count: int = 1) -> None:
        await until(lambda: len(self.peer.asked) == count)


async def test_waiting_operations_are_combined() -> None:
    world = World()
    world.send(0)
    await world.asks()
    for partition in (1, 2, 1, 3):
        world.send(partition)
    assert world.peer.partitions() == [0]
    world.peer.respond()
    await world.asks()
    # Partition 1 is written again after the first write.
    assert world.peer.partitions() == [1, 2]
    world.peer.respond(ErrorCode.FENCED_LEADER_EPOCH)
    await world.asks()
    assert world.peer.partitions() == [1, 3]
    world.peer.respond()
    await until(lambda: len(world.results) == 5)
    fenced = ErrorCode.FENCED_LEADER_EPOCH
    assert world.results == [(0, 0), (1, fenced), (2, fenced), (1, 0), (3, 0)]
    await world.peer.close()


async def test_kinds_of_operations_and_groups_do_not_wait_for_each_other() -> None:
    world = World()
    world.send(0)
    world.send(0, Delete())
    world.send(0, group="h")
    await world.asks(3)
    await world.peer.close()


async def test_a_request_contains_a_limited_number_of_share_partitions() -> None:
    world = World()
    for partition in range(PARTITIONS_MAX + 1):
        world.send(partition)
    await world.asks()
    assert len(world.peer.partitions()) == PARTITIONS_MAX
    world.peer.respond()
    await world.asks()
    assert world.peer.partitions() == [PARTITIONS_MAX]
    await world.peer.close()


async def test_a_lost_connection_ends_all_operations_of_the_request() -> None:
    world = World()
    world.send(0)
    world.send(1)
    await world.asks()
    world.peer.asked.pop()[1].set_exception(ConnectionError("lost"))
    await until(lambda: len(world.results) == 2)
    assert {error for _, error in world.results} == {ErrorCode.NETWORK_EXCEPTION}
    world.send(2)
    await world.asks()
    # A response that lacks the share-partition is an unexpected error.
    world.peer.asked.pop()[1].set_result(API_OF[Write].response())
    await until(lambda: len(world.results) == 3)
    assert world.results[-1] == (2, ErrorCode.UNKNOWN_SERVER_ERROR)
    await world.peer.close()
