"""Transactions with three brokers: coordinators, leaders and groups on different brokers, and broker
failures.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import KafkaException, Producer

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from tests.cluster.embedded import EmbeddedCluster, until
from tests.support import campaign
from tests.support.secured import Secured
from tests.transactions import programs
from tests.transactions.programs import PATIENCE_S, read_all, transactional_producer, write

PARTITIONS = 6
T = TypeVar("T")


@pytest.fixture(params=["plain", "secured"] if campaign.enabled() else ["plain"])
async def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedCluster]:
    security = Secured(tmp_path / "security") if request.param == "secured" else None
    cluster = EmbeddedCluster(tmp_path, security=security)
    with security.clients() if security is not None else nullcontext():
        await cluster.start()
        assert await cluster.create_topic("topic", PARTITIONS) == ErrorCode.NONE
        yield cluster
        await cluster.stop()


def addresses(cluster: EmbeddedCluster) -> str:
    return ",".join(f"127.0.0.1:{cluster.port(broker_id)}" for broker_id in cluster.brokers)


async def client(program: Callable[..., T], *arguments: Any, **settings: Any) -> T:
    """Run a client program in a thread, so that the brokers' event loop is not blocked."""
    return await asyncio.to_thread(program, *arguments, **settings)


def coordinator(cluster: EmbeddedCluster, transactional_id: str) -> int:
    return cluster.leader(TRANSACTIONS_TOPIC, shard_of(transactional_id, 3))


def begin(producer: Producer, values: list[str]) -> None:
    """Begin a transaction with each value in a different partition, so that it involves every broker."""
    producer.begin_transaction()
    for index, value in enumerate(values):
        write(producer, "topic", [value], index % PARTITIONS)
    producer.flush(PATIENCE_S)


async def committed(cluster: EmbeddedCluster) -> list[str]:
    return sorted(await client(read_all, addresses(cluster), "topic", partitions=PARTITIONS))


async def ended(cluster: EmbeddedCluster) -> list[str]:
    """Return the committed values after all markers are written, which happens after the producer gets its
    response.
    """
    await until(lambda: cluster.is_at_rest("topic", PARTITIONS))
    return await committed(cluster)


async def test_a_transaction_can_span_brokers(cluster: EmbeddedCluster) -> None:
    producer = await client(transactional_producer, addresses(cluster), "id")
    kept = [f"kept-{index}" for index in range(PARTITIONS)]
    await client(begin, producer, kept)
    assert await committed(cluster) == []
    await client(producer.commit_transaction, PATIENCE_S)
    await client(begin, producer, ["dropped"] * PARTITIONS)
    await client(producer.abort_transaction, PATIENCE_S)
    assert await ended(cluster) == kept
    assert {cluster.leader("topic", index) for index in range(PARTITIONS)} == {1, 2, 3}
    assert cluster.isr(TRANSACTIONS_TOPIC) == {1, 2, 3}


async def test_a_transaction_commits_offsets_for_a_group_on_another_broker(cluster: EmbeddedCluster) -> None:
    address = addresses(cluster)
    assert await cluster.create_topic("source") == ErrorCode.NONE
    assert await cluster.create_topic("target") == ErrorCode.NONE
    for number in range(30):
        assert await cluster.produce(cluster.leader("source"), "source", b"%d" % number) == ErrorCode.NONE
    # With two groups and two ids, some are on different brokers.
    for number in range(2):
        group = f"group-{number}"
        await client(programs.copy, address, "source", "target", group, f"copier-{number}", abort_every=3)
        assert await client(programs.committed_offset, address, group, "source") == 30
    await until(lambda: cluster.is_at_rest("target", 1))
    assert await client(read_all, address, "target") == 2 * [f"{number}'" for number in range(30)]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
async def test_a_transaction_survives_the_loss_of_its_coordinator(
    cluster: EmbeddedCluster, outcome: str
) -> None:
    producer = await client(transactional_producer, addresses(cluster), "id")
    values = [f"{index}" for index in range(PARTITIONS)]
    await client(begin, producer, values)
    lost = coordinator(cluster, "id")
    await cluster.stop_broker(lost, controlled=False)
    end = producer.commit_transaction if outcome == "commit" else producer.abort_transaction
    await client(end, PATIENCE_S)
    expected = values if outcome == "commit" else []
    assert await ended(cluster) == expected
    await cluster.start_broker(lost)
    await client(begin, producer, ["more"])
    await client(producer.commit_transaction, PATIENCE_S)
    assert await ended(cluster) == sorted([*expected, "more"])


async def test_a_prepared_transaction_is_completed_by_the_next_coordinator(cluster: EmbeddedCluster) -> None:
    """When the coordinator fails, it has not written the markers, because the partitions are below
    min.insync.replicas.
    """
    producer = await client(transactional_producer, addresses(cluster), "id")
    values = [f"{index}" for index in range(PARTITIONS)]
    await client(begin, producer, values)
    for broker in cluster.brokers.values():
        for held in broker.replicas:
            if held.topic == "topic":
                held.min_insync_replicas = 4 if held.is_leader else 1
                held.is_under_min_isr = held.is_leader
    committing = asyncio.create_task(client(producer.commit_transaction, PATIENCE_S))
    first = coordinator(cluster, "id")
    transactions = cluster.brokers[first].services.transactions
    await until(
        lambda: (found := transactions.describe("id")[1]) is not None and found.state == "PrepareCommit"
    )
    await cluster.stop_broker(first, controlled=False)
    await until(lambda: coordinator(cluster, "id") not in (-1, first))
    for broker in cluster.brokers.values():
        for held in broker.replicas:
            if held.topic == "topic":
                held.min_insync_replicas = 1
    await committing
    assert await ended(cluster) == values


async def test_a_zombie_is_fenced_on_every_broker(cluster: EmbeddedCluster) -> None:
    address = addresses(cluster)
    zombie = await client(transactional_producer, address, "id")
    await client(begin, zombie, ["lost"] * PARTITIONS)
    lost = coordinator(cluster, "id")
    await cluster.stop_broker(lost, controlled=False)
    heir = await client(transactional_producer, address, "id")
    with pytest.raises(KafkaException) as fenced:
        await client(zombie.commit_transaction, PATIENCE_S)
    assert fenced.value.args[0].fatal()
    await client(begin, heir, ["kept"])
    await client(heir.commit_transaction, PATIENCE_S)
    assert await ended(cluster) == ["kept"]
