"""The controller's requests to other brokers are encoded correctly, on the event loop and in a thread."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, cast

import pytest

from kafka_compat.cluster import controller_wire, remote_requests
from kafka_compat.cluster.broker_client import BrokerClient, Encoded
from kafka_compat.coordination.controller import effects
from kafka_compat.coordination.controller.outcomes import Assignment, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState
from kafka_compat.long_work import LongWork
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey

BROKER = BrokerInfo(1, (Endpoint("PLAINTEXT", "host", 9092),), None, 5)
STATE = PartitionState(1, 3, (1,), 7)
TOPIC_ID = uuid.UUID(int=9)


class KeepingClient:
    """Stands in for a connection to a broker, and records the bodies of the requests."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def send(self, api_key: ApiKey, version: int, request: Any) -> None:
        self.bodies.append(request.body if isinstance(request, Encoded) else codec.encode(request, version))


async def sent(requests: list[Any]) -> list[bytes]:
    client = KeepingClient()
    for request in requests:
        await request.send(cast("BrokerClient", client))
    return client.bodies


@pytest.mark.parametrize("count", [0, 1, 1_500], ids=["no partition", "one partition", "in a thread"])
@pytest.mark.parametrize("version", [5, 6, 7, 8])
def test_the_requests_of_an_update_differ_only_in_the_broker_epoch(version: int, count: int) -> None:
    partitions = tuple(
        effects.UpdateMetadataPartition(TopicPartition("t", number), TOPIC_ID, STATE, (1,), ())
        for number in range(count)
    )
    effect = effects.SendUpdateMetadata((), 7, partitions, (BROKER,))
    epochs = [0, -1, 3, 2**40]

    async def run() -> list[bytes]:
        work = LongWork(asyncio.get_running_loop())
        update = remote_requests.UpdateMetadata(4, effect, version, work)
        return await sent([update.request(epoch) for epoch in epochs])

    wanted = [codec.encode(controller_wire.update_metadata(4, effect, epoch), version) for epoch in epochs]
    assert asyncio.run(run()) == wanted


@pytest.mark.parametrize("count", [1, 1_500], ids=["at once", "in a thread"])
def test_a_long_leader_and_isr_request_is_encoded_in_the_same_way(count: int) -> None:
    partitions = tuple(
        effects.LeaderAndIsrPartition(TopicPartition("t", number), TOPIC_ID, STATE, Assignment((1,)), False)
        for number in range(count)
    )
    effect = effects.SendLeaderAndIsr(effects.BrokerEpoch(1, 5), 7, partitions, (BROKER,))

    async def run() -> list[bytes]:
        work = LongWork(asyncio.get_running_loop())
        request = remote_requests.leader_and_isr(4, effect, "PLAINTEXT", 7, lambda event: None, work)
        return await sent([request])

    wanted = codec.encode(controller_wire.leader_and_isr(4, effect, "PLAINTEXT"), 7)
    assert asyncio.run(run()) == [wanted]
