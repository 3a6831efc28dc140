"""transaction.version 2 with three brokers, request by request: partitions are added implicitly at a remote
coordinator, and delayed duplicates of requests arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafka_compat.protocol.messages.init_producer_id import InitProducerIdRequest
from kafka_compat.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_compat.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.transactions.status import ProducerIdentity
from tests.cluster.embedded import SETTLE_S, EmbeddedCluster, until
from tests.transactions.programs import read_all

PARTITIONS = 3


class RawProducer:
    """A Kafka 4 client with the transactional id `id`, whose requests the test can repeat."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.identity = ProducerIdentity(-1, -1)
        self._sequences = dict.fromkeys(range(PARTITIONS), 0)

    @property
    def coordinator(self) -> int:
        return self.cluster.leader(TRANSACTIONS_TOPIC, shard_of("id", 3))

    async def init(self) -> None:
        find = FindCoordinatorRequest(key="id", key_type=1)
        await self.cluster.send(1, ApiKey.FIND_COORDINATOR, 3, find)
        await until(lambda: self.coordinator > 0)
        request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000)
        response = await self.cluster.send(self.coordinator, ApiKey.INIT_PRODUCER_ID, 5, request)
        assert response.error_code == 0
        self.identity = ProducerIdentity(response.producer_id, response.producer_epoch)

    async def write(self, partition: int, value: str) -> ErrorCode:
        """Send Produce version 12, and retry while the error is retriable."""
        batch = build_batch(
            [Record(timestamp=1, key=None, value=value.encode())],
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=self._sequences[partition],
            transactional=True,
        )
        request = ProduceRequest(
            transactional_id="id",
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name="topic",
                    partition_data=[PartitionProduceData(index=partition, records=memoryview(batch))],
                )
            ],
        )
        async with asyncio.timeout(SETTLE_S):
            while True:
                leader = self.cluster.leader("topic", partition)
                response = await self.cluster.send(leader, ApiKey.PRODUCE, 12, request)
                error = ErrorCode(response.responses[0].partition_responses[0].error_code)
                if error not in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                    self._sequences[partition] += not error
                    return error

    async def end(self, identity: ProducerIdentity, committed: bool) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id="id",
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=committed,
        )
        response: EndTxnResponse = await self.cluster.send(self.coordinator, ApiKey.END_TXN, 5, request)
        return response

    async def finish(self, committed: bool) -> None:
        """End the transaction, and continue with the returned identity."""
        response = await self.end(self.identity, committed)
        assert response.error_code == 0
        self.identity = ProducerIdentity(response.producer_id, response.producer_epoch)
        self._sequences = dict.fromkeys(range(PARTITIONS), 0)

    async def marker(self, partition: int, identity: ProducerIdentity, version: int) -> ErrorCode:
        """Send a copy of a coordinator's WriteTxnMarkers request with a commit marker."""
        marker = WritableTxnMarker(
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name="topic", partition_indexes=[partition])],
            coordinator_epoch=0,
            transaction_version=version,
        )
        leader = self.cluster.leader("topic", partition)
        response = await self.cluster.send(
            leader, ApiKey.WRITE_TXN_MARKERS, 2, WriteTxnMarkersRequest(markers=[marker])
        )
        return ErrorCode(response.markers[0].topics[0].partitions[0].error_code)

    async def ended(self) -> list[str]:
        """Return the committed values after all markers are written, which happens after the producer gets
        its response.
        """
        await until(lambda: self.cluster.is_at_rest("topic", PARTITIONS))
        return await self.committed()

    async def committed(self) -> list[str]:
        address = f"127.0.0.1:{self.cluster.brokers[1].addresses['PLAINTEXT'][1]}"
        return sorted(await asyncio.to_thread(read_all, address, "topic", partitions=PARTITIONS))


@pytest.fixture
async def producer(tmp_path: Path) -> AsyncIterator[RawProducer]:
    cluster = EmbeddedCluster(tmp_path, settings={"kafka.compat.transaction.version": "2"})
    await cluster.start()
    assert await cluster.create_topic("topic", PARTITIONS) == ErrorCode.NONE
    producer = RawProducer(cluster)
    await producer.init()
    yield producer
    await cluster.stop()


async def test_late_duplicate_requests_have_no_effect(producer: RawProducer) -> None:
    first = producer.identity
    for partition in range(PARTITIONS):
        assert await producer.write(partition, f"kept-{partition}") == ErrorCode.NONE
    await producer.finish(committed=True)
    second = producer.identity
    assert second == (first.producer_id, first.producer_epoch + 1)

    for partition in range(PARTITIONS):
        assert await producer.write(partition, f"dropped-{partition}") == ErrorCode.NONE
    assert (await producer.end(first, True)).error_code == ErrorCode.PRODUCER_FENCED
    for partition in range(PARTITIONS):
        assert await producer.marker(partition, second, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.marker(partition, first, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.write(partition, f"more-{partition}") == ErrorCode.NONE
    assert await producer.committed() == [f"kept-{partition}" for partition in range(PARTITIONS)]
    await producer.finish(committed=False)
    third = producer.identity
    assert await producer.write(0, "last") == ErrorCode.NONE
    await producer.finish(committed=True)
    assert third == (first.producer_id, first.producer_epoch + 2)
    assert await producer.ended() == ["kept-0", "kept-1", "kept-2", "last"]


async def test_a_marker_without_a_version_ends_the_open_transaction(producer: RawProducer) -> None:
    """Kafka 4.1 sends such markers, which shows why later markers contain the transaction version."""
    await producer.write(0, "one")
    await producer.finish(committed=True)
    await producer.write(0, "two")
    assert await producer.marker(0, producer.identity, 0) == ErrorCode.NONE
    assert await producer.ended() == ["one", "two"], "the marker committed the open transaction"


async def test_a_transaction_continues_on_the_next_coordinator(producer: RawProducer) -> None:
    cluster = producer.cluster
    assert await producer.write(0, "before") == ErrorCode.NONE
    lost = producer.coordinator
    await cluster.stop_broker(lost, controlled=False)
    await until(lambda: producer.coordinator not in (-1, lost))
    await until(lambda: all(cluster.leader("topic", index) > 0 for index in range(PARTITIONS)))
    assert await producer.write(1, "after") == ErrorCode.NONE
    before = producer.identity
    await producer.finish(committed=True)
    async with asyncio.timeout(SETTLE_S):
        while (again := await producer.end(before, True)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            pass  # its markers are on their way
    assert (again.error_code, again.producer_epoch) == (0, producer.identity.producer_epoch)
    assert await producer.write(2, "next") == ErrorCode.NONE
    await producer.finish(committed=True)
    await cluster.start_broker(lost)
    await until(lambda: cluster.isr("topic", 2) == {1, 2, 3})
    assert await producer.ended() == ["after", "before", "next"]
