"""Producers that write to a fixed broker whether or not it is the leader, to find out which broker
acknowledges in which leader epoch.

An ordinary client follows the metadata and would leave a replaced leader. These producers keep sending
records for every partition to a broker that still believes it is the leader. Records acknowledged with
acks=all are compared with the log at the end.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafka_compat.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.records import Record, build_batch, iter_records
from tests.faults.cluster import FaultCluster
from tests.support.client_security import for_brokers

_PRODUCE_VERSION = 9
_FETCH_VERSION = 12
_ALL = -1
_TIMEOUT_MS = 1000
_PATIENCE_MS = 3000
_PAUSE_S = 0.05
_FETCH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BrokerAcknowledgement:
    """A broker's acknowledgement that a record is stored on all in-sync replicas."""

    broker_id: int
    partition: int
    offset: int
    value: bytes
    time_s: float
    """The time, from time.monotonic()."""


class StubbornProducers:
    """Producers for every broker and partition, in a separate thread. Use it as a context manager."""

    def __init__(self, cluster: FaultCluster, topic: str, partitions: int) -> None:
        self.acknowledged: list[BrokerAcknowledgement] = []
        self._topic = topic
        self._partitions = partitions
        self._ports = {broker_id: broker.port for broker_id, broker in cluster.brokers.items()}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="stubborn")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)

    def acknowledged_since(self, time_s: float) -> bool:
        """Return whether every partition has an acknowledgement after `time_s` (time.monotonic())."""
        recent = {item.partition for item in list(self.acknowledged) if item.time_s > time_s}
        return len(recent) == self._partitions

    async def _run(self) -> None:
        await asyncio.gather(
            *(
                self._insist(broker_id, port, partition)
                for broker_id, port in self._ports.items()
                for partition in range(self._partitions)
            )
        )

    async def _insist(self, broker_id: int, port: int, partition: int) -> None:
        client = BrokerClient(
            "127.0.0.1", port, "stubborn", request_timeout_ms=_PATIENCE_MS, security=for_brokers()
        )
        number = 0
        while not self._stopping.is_set():
            value = b"%d-%d-%d" % (broker_id, partition, number)
            number += 1
            try:
                offset = await self._produce(client, partition, value)
            except ConnectionError:
                offset = None
            if offset is not None:
                now_s = time.monotonic()
                self.acknowledged.append(BrokerAcknowledgement(broker_id, partition, offset, value, now_s))
            await asyncio.sleep(_PAUSE_S)  # interval between records
        await client.close()

    async def _produce(self, client: BrokerClient, partition: int, value: bytes) -> int | None:
        """Return the offset of the record, or None if the broker did not acknowledge it."""
        batch = build_batch([Record(timestamp=time.time_ns() // 1_000_000, value=value)])
        data = PartitionProduceData(index=partition, records=batch)
        topics = [TopicProduceData(name=self._topic, partition_data=[data])]
        request = ProduceRequest(acks=_ALL, timeout_ms=_TIMEOUT_MS, topic_data=topics)
        response: ProduceResponse = await client.send(ApiKey.PRODUCE, _PRODUCE_VERSION, request)
        answer = response.responses[0].partition_responses[0]
        return answer.base_offset if answer.error_code == ErrorCode.NONE else None


@dataclass(frozen=True, slots=True)
class Stored:
    """A record in the log."""

    leader_epoch: int
    value: bytes


def read_log(port: int, topic: str, partition: int) -> dict[int, Stored]:
    """Read all committed records of a partition from its leader, with the leader epochs of their batches."""
    return asyncio.run(_read_log(port, topic, partition))


async def _read_log(port: int, topic: str, partition: int) -> dict[int, Stored]:
    client = BrokerClient("127.0.0.1", port, "reader", security=for_brokers())
    found: dict[int, Stored] = {}
    offset = 0
    while True:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
        request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])
        response: FetchResponse = await client.send(ApiKey.FETCH, _FETCH_VERSION, request)
        data = response.responses[0].partitions[0]
        assert data.error_code == ErrorCode.NONE, ErrorCode(data.error_code)
        records = data.records or b""
        assert isinstance(records, bytes | memoryview)
        if not records:
            break
        position = 0
        while position < len(records):
            header = read_header(records, position)
            if position + header.size_bytes > len(records):
                break
            batch = records[position : position + header.size_bytes]
            for record in iter_records(batch):
                found[record.offset] = Stored(header.partition_leader_epoch, record.value or b"")
            position += header.size_bytes
            offset = header.next_offset
    await client.close()
    return found


def lost(
    acknowledged: list[BrokerAcknowledgement], logs: Mapping[int, Mapping[int, Stored]]
) -> list[BrokerAcknowledgement]:
    """Return the acknowledged records that are not in the logs, by partition, at the acknowledged offset."""
    return [
        item
        for item in acknowledged
        if (stored := logs[item.partition].get(item.offset)) is None or stored.value != item.value
    ]


def rivals(
    acknowledged: list[BrokerAcknowledgement], logs: Mapping[int, Mapping[int, Stored]]
) -> dict[tuple[int, int], set[int]]:
    """Return the brokers that acknowledged records, by (partition, leader epoch), where there is more than
    one.
    """
    leaders: dict[tuple[int, int], set[int]] = defaultdict(set)
    for item in acknowledged:
        stored = logs[item.partition].get(item.offset)
        if stored is not None:
            leaders[item.partition, stored.leader_epoch].add(item.broker_id)
    return {key: brokers for key, brokers in leaders.items() if len(brokers) > 1}
