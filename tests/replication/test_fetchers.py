"""num.replica.fetchers: the distribution of partitions over fetchers, and changes at runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_compat.replication.replica_fetcher import fetcher_of
from tests.cluster.embedded import EmbeddedBroker, EmbeddedCluster, until

BROKER = 4
PARTITIONS = 12


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path, settings={"num.replica.fetchers": "2"})
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.mark.parametrize(
    ("topic", "partition", "fetcher"),
    [
        # abs(31 * topic.hashCode() + partition) % 1000, computed by a JVM.
        ("t", 0, 596),
        ("t", 7, 603),
        ("__consumer_offsets", 49, 318),
        ("a-long-name-whose-hash-wraps", 3, 495),
        ("polygenelubricants", 0, 0),
    ],
)
def test_partitions_are_distributed_by_kafkas_hash(topic: str, partition: int, fetcher: int) -> None:
    assert fetcher_of(topic, partition, 1000) == fetcher


async def set_fetchers(cluster: EmbeddedCluster, broker_id: int, count: int) -> ErrorCode:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=BROKER,
                resource_name=str(broker_id),
                configs=[AlterableConfig(name="num.replica.fetchers", config_operation=0, value=str(count))],
            )
        ]
    )
    response = await cluster.send(broker_id, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    return ErrorCode(response.responses[0].error_code)


def fetchers(broker: EmbeddedBroker) -> set[tuple[int, int]]:
    """Return the fetchers that the broker's partitions need, as (leader, number)."""
    count = broker.config.int("num.replica.fetchers")
    return {
        (held.leader_id, fetcher_of(held.topic, held.partition, count))
        for held in broker.replicas
        if not held.is_leader
    }


async def replicated(cluster: EmbeddedCluster, records: int) -> None:
    """Wait until every replica of t-0 has `records` records."""
    held = [broker.replicas.get("t", 0) for broker in cluster.brokers.values()]
    await until(lambda: all(item is not None and item.log.log_end_offset == records for item in held))


async def test_the_number_of_fetchers_can_change_at_runtime(cluster: EmbeddedCluster) -> None:
    assert await cluster.create_topic("t", partitions=PARTITIONS) == ErrorCode.NONE
    broker = cluster.brokers[next(item for item in cluster.brokers if item != cluster.leader("t"))]
    fetching: Any = broker.replicas.fetching
    for number, count in enumerate((4, 2, 1)):
        assert await set_fetchers(cluster, broker.broker_id, count) == ErrorCode.NONE
        await until(lambda: len(fetching) == len(fetchers(broker)))
        assert len(fetchers(broker)) == 2 * count
        assert await cluster.produce(cluster.leader("t"), "t", b"x") == ErrorCode.NONE
        await replicated(cluster, number + 1)


async def test_one_change_at_most_doubles_or_halves_the_number_of_fetchers(cluster: EmbeddedCluster) -> None:
    assert await set_fetchers(cluster, 1, 5) == ErrorCode.INVALID_REQUEST
    assert await set_fetchers(cluster, 1, 0) == ErrorCode.INVALID_REQUEST
    assert await set_fetchers(cluster, 1, 4) == ErrorCode.NONE
    assert await set_fetchers(cluster, 1, 1) == ErrorCode.INVALID_REQUEST


async def test_no_fetcher_starts_after_the_fetchers_have_been_closed(cluster: EmbeddedCluster) -> None:
    """A request of the controller may be under way while a broker stops."""
    assert await cluster.create_topic("t") == ErrorCode.NONE
    broker = cluster.brokers[next(item for item in cluster.brokers if item != cluster.leader("t"))]
    fetching: Any = broker.replicas.fetching
    partition = broker.replicas.get("t", 0)
    assert partition is not None
    await fetching.close()
    fetching.start(partition, uuid4())
    assert len(fetching) == 0
    fetching.stop(partition)
