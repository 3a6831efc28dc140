"""A broker whose log directory was emptied while no broker ran: the other replicas keep the records."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.cluster import lost_records
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.cluster.embedded import EmbeddedCluster, until

_WAIT_S = 1.0
_UNCLEAN = 1


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


def wipe(cluster: EmbeddedCluster, broker_id: int) -> None:
    shutil.rmtree(cluster.directory / f"broker-{broker_id}")


async def leads(cluster: EmbeddedCluster, topic: str, broker_id: int) -> None:
    await until(lambda: cluster.leader(topic) == broker_id)


async def has_its_record(cluster: EmbeddedCluster, topic: str) -> None:
    """Wait until all replicas of the topic are in sync, and read it."""
    await until(lambda: cluster.isr(topic) == {1, 2, 3})
    assert await cluster.values(cluster.leader(topic), topic) == [b"acknowledged"]


async def have_their_records(cluster: EmbeddedCluster) -> None:
    for topic in ("t1", "t2", "t3"):
        await has_its_record(cluster, topic)


async def filled(cluster: EmbeddedCluster) -> None:
    """Create a topic that each broker leads first, and write a record to each of them."""
    for first in (1, 2, 3):
        assignment = (first, *(each for each in (1, 2, 3) if each != first))
        assert await cluster.create_topic(f"t{first}", assignment=assignment) == ErrorCode.NONE
        await leads(cluster, f"t{first}", first)
        assert await cluster.produce(first, f"t{first}", b"acknowledged") == ErrorCode.NONE
        assert cluster.isr(f"t{first}") == {1, 2, 3}


async def test_the_other_replicas_become_leaders_after_all_brokers_were_stopped_at_once(
    cluster: EmbeddedCluster,
) -> None:
    await filled(cluster)
    await asyncio.gather(*(cluster.stop_broker(each, controlled=False) for each in (1, 2, 3)))
    wipe(cluster, 1)
    returning = asyncio.create_task(cluster.start_broker(1))
    await cluster.start_broker(2)
    await cluster.start_broker(3)
    await asyncio.wait_for(returning, 20)
    await have_their_records(cluster)


async def test_the_last_in_sync_replica_waits_for_an_unclean_election(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lost_records, "WAIT_S", _WAIT_S)
    await filled(cluster)
    for broker_id in (3, 2, 1):
        await cluster.stop_broker(broker_id)
    wipe(cluster, 1)
    await cluster.start_broker(2)
    await cluster.start_broker(3)
    with caplog.at_level(logging.WARNING):
        returning = asyncio.create_task(cluster.start_broker(1))
        await until(lambda: "This broker cannot join the cluster: it has no records of t1-0" in caplog.text)
    assert not returning.done()
    partitions = [TopicPartitions(topic=f"t{number}", partitions=[0]) for number in (1, 2, 3)]
    request = ElectLeadersRequest(election_type=_UNCLEAN, topic_partitions=partitions, timeout_ms=10_000)
    await cluster.send(cluster.controller.broker_id, ApiKey.ELECT_LEADERS, 2, request)
    await asyncio.wait_for(returning, 20)
    await have_their_records(cluster)


async def test_replicas_that_are_all_empty_start_after_the_wait(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lost_records, "WAIT_S", _WAIT_S)
    await filled(cluster)
    await asyncio.gather(*(cluster.stop_broker(each, controlled=False) for each in (1, 2, 3)))
    for broker_id in (1, 2, 3):
        wipe(cluster, broker_id)
    await asyncio.wait_for(asyncio.gather(*map(cluster.start_broker, (1, 2, 3))), 30)
    assert "No other replica of t1-0" in caplog.text
    await until(lambda: cluster.leader("t1") > 0)
    assert await cluster.produce(cluster.leader("t1"), "t1", b"new") == ErrorCode.NONE
