"""Verification of transactions by coordinators on brokers with other versions of AddPartitionsToTxn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.cluster.remote_coordinators import ClusterCoordinators
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafka_compat.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafka_compat.transactions.status import ProducerIdentity

PLACE = ("t", 0)
NO_LOCAL: Any = None


class _Coordinator:
    """Broker 2, which coordinates all transactions, and its connection. It rejects what it verifies."""

    def __init__(self, highest: int) -> None:
        self.highest = highest
        self.asked: list[tuple[ApiKey, int]] = []

    def client(self, broker_id: int) -> _Coordinator:
        assert broker_id == 2
        return self

    def run(self, name: str, work: Any) -> None:
        self.task = asyncio.ensure_future(work())

    async def send(self, key: ApiKey, version: int, request: Any) -> Any:
        self.asked.append((key, version))
        if key is ApiKey.API_VERSIONS:
            supported = ApiVersion(
                api_key=ApiKey.ADD_PARTITIONS_TO_TXN, min_version=0, max_version=self.highest
            )
            return ApiVersionsResponse(api_keys=[supported])
        if version > self.highest:
            raise ConnectionError("the broker closed the connection")
        assert isinstance(request, AddPartitionsToTxnRequest)
        result = AddPartitionsToTxnPartitionResult(
            partition_index=0, partition_error_code=ErrorCode.INVALID_TXN_STATE
        )
        topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[result])
        return AddPartitionsToTxnResponse(
            results_by_transaction=[AddPartitionsToTxnResult(transactional_id="id", topic_results=[topic])]
        )


def _cache(*brokers: int) -> MetadataCache:
    cache = MetadataCache("cluster", 1)
    change = cache.change()
    change.set_brokers({number: BrokerMetadata(number, {}) for number in brokers})
    change.publish()
    partitions = (PartitionMetadata(0, 2, 0, (2,), (2,)),)
    cache.put_topic(TopicMetadata(TRANSACTIONS_TOPIC, UUID(int=1), partitions))
    return cache


async def _verify(coordinators: ClusterCoordinators, adds: bool = False) -> Mapping[Any, ErrorCode]:
    answered: asyncio.Future[Mapping[Any, ErrorCode]] = asyncio.get_running_loop().create_future()
    coordinators.ask("id", ProducerIdentity(1, 0), [PLACE], answered.set_result, adds=adds)
    async with asyncio.timeout(5):
        return await answered


@pytest.mark.parametrize(
    ("highest", "error", "version"),
    [
        (3, ErrorCode.NONE, None),
        (4, ErrorCode.INVALID_TXN_STATE, 4),
        (5, ErrorCode.INVALID_TXN_STATE, 5),
        (9, ErrorCode.INVALID_TXN_STATE, 5),
    ],
)
async def test_transactions_are_verified_with_the_version_of_the_coordinator_or_not_at_all(
    highest: int, error: ErrorCode, version: int | None
) -> None:
    broker = _Coordinator(highest)
    peers: Any = broker
    coordinators = ClusterCoordinators(NO_LOCAL, _cache(1, 2), peers, None)
    assert await _verify(coordinators) == {PLACE: error}
    assert await _verify(coordinators) == {PLACE: error}
    verified = [(ApiKey.ADD_PARTITIONS_TO_TXN, version)] * 2 if version is not None else []
    assert broker.asked == [(ApiKey.API_VERSIONS, 0), *verified]


async def test_partitions_are_not_added_by_a_coordinator_that_cannot() -> None:
    peers: Any = _Coordinator(3)
    coordinators = ClusterCoordinators(NO_LOCAL, _cache(1, 2), peers, None)
    assert await _verify(coordinators, adds=True) == {PLACE: ErrorCode.UNSUPPORTED_VERSION}


async def test_the_version_is_asked_again_after_the_coordinator_was_replaced() -> None:
    broker = _Coordinator(5)
    peers: Any = broker
    coordinators = ClusterCoordinators(NO_LOCAL, _cache(1, 2), peers, None)
    await _verify(coordinators)
    broker.highest = 3
    assert await _verify(coordinators) == {PLACE: ErrorCode.NETWORK_EXCEPTION}
    assert await _verify(coordinators) == {PLACE: ErrorCode.NONE}
