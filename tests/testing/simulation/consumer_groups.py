"""A simulated program: members of a consumer group of Kafka 4 (KIP-848), which come, go, and lose brokers.

aiokafka does not support the protocol, so the members send their requests over streams.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from uuid import UUID

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader, encode_request_header
from kafka_compat.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_compat.testing import Simulation

TOPIC = "orders"
PARTITIONS = 6
HEADER_BYTES = 5
INTERVAL_S = 1.0
FENCED = (25, 110)
"""UNKNOWN_MEMBER_ID and FENCED_MEMBER_EPOCH: the member gives up its partitions and joins again."""


class Member:
    """A member that gives up partitions before it reports this. `beat` is notified of its heartbeats."""

    def __init__(self, member_id: str, beat: asyncio.Condition) -> None:
        self.member_id = member_id
        self._has_beaten = beat
        self.epoch = 0
        self.owned: dict[UUID, tuple[int, ...]] = {}

    @property
    def partitions(self) -> set[int]:
        return {partition for each in self.owned.values() for partition in each}

    async def run(self, simulation: Simulation) -> None:
        """Send heartbeats to one broker after another, until one of them is the coordinator."""
        number = 0
        while True:
            number = number % len(simulation.brokers) + 1
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                reader, writer = await asyncio.open_connection(f"kafka-{number}", 9092)
                try:
                    await self._stay(reader, writer)
                finally:
                    writer.close()
            await asyncio.sleep(INTERVAL_S)  # simulated time

    async def _stay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            if not await asyncio.wait_for(self._beat(reader, writer), 10):
                return
            async with self._has_beaten:
                self._has_beaten.notify_all()
            await asyncio.sleep(INTERVAL_S)  # simulated time

    async def _beat(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send one heartbeat. Return False if another broker may be the coordinator."""
        joins = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="group",
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[]
            if joins
            else [TopicPartitions(topic_id=key, partitions=list(each)) for key, each in self.owned.items()],
        )
        header = encode_request_header(RequestHeader(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, 1, "member"))
        payload = header + codec.encode(request, 1)
        writer.write(len(payload).to_bytes(4, "big") + payload)
        size_bytes = int.from_bytes(await reader.readexactly(4), "big")
        answer = await reader.readexactly(size_bytes)
        found: Any = codec.decode(ConsumerGroupHeartbeatResponse, 1, answer, HEADER_BYTES)
        if found.error_code in FENCED:
            self.epoch, self.owned = 0, {}
        elif found.error_code:
            return False
        else:
            self.epoch = found.member_epoch
            if found.assignment is not None:
                topics = found.assignment.topic_partitions
                self.owned = {topic.topic_id: tuple(topic.partitions) for topic in topics}
        return True


async def main(simulation: Simulation) -> None:
    """Two members share the partitions while brokers fail, and one of them takes over when the other dies."""
    admin = AIOKafkaAdminClient(bootstrap_servers=simulation.bootstrap_servers)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, PARTITIONS, min(3, len(simulation.brokers)))])
    await admin.find_coordinator("group")
    await admin.close()
    beat = asyncio.Condition()
    members = [Member("one", beat), Member("two", beat)]
    tasks = [asyncio.create_task(member.run(simulation)) for member in members]
    await asyncio.sleep(30)  # simulated time
    await simulation.calm()

    def owned() -> list[int]:
        return sorted(partition for member in members for partition in member.partitions)

    everything = list(range(PARTITIONS))
    half = PARTITIONS // 2
    async with beat:
        await beat.wait_for(
            lambda: owned() == everything and all(len(each.partitions) == half for each in members)
        )
        tasks[0].cancel()
        del members[0]
        await beat.wait_for(lambda: owned() == everything)
    tasks[1].cancel()
