"""Expiry of the controller's session while topics are created and records are acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import EmbeddedCluster, until
from tests.quorum.kinds import KINDS
from tests.support.campaign import rounds

EXPIRIES = rounds(everyday=3, campaign=30)
ALL = {1, 2, 3}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster: EmbeddedCluster = request.param(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


class Load:
    """One client that produces to a topic, and one that creates topics. Both retry on errors."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.acknowledged: list[bytes] = []
        self.topics: list[str] = []
        self.over = False

    async def produce(self) -> None:
        number = 0
        while not self.over:
            value = b"%d" % number
            if await self._to_leader(value) == ErrorCode.NONE:
                self.acknowledged.append(value)
                number += 1

    async def _to_leader(self, value: bytes) -> ErrorCode:
        leader = self._cluster.leader("t")
        if leader >= 0:
            return await self._cluster.produce(leader, "t", value)
        await asyncio.sleep(0.01)  # retry interval without a leader
        return ErrorCode.LEADER_NOT_AVAILABLE

    async def make_topics(self) -> None:
        while not self.over:
            name = f"topic-{len(self.topics)}"
            if any(broker.controller.is_active for broker in self._cluster.brokers.values()):
                made = await self._cluster.create_topic(name)
                if made in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    self.topics.append(name)
                    continue
            await asyncio.sleep(0.01)  # retry interval without a controller


async def test_a_controller_is_replaced_when_its_session_expires_under_load(cluster: EmbeddedCluster) -> None:
    """No acknowledged record and no created topic is lost, and each expiry results in one new controller."""
    await cluster.create_topic("t")
    load = Load(cluster)
    working = [asyncio.create_task(load.produce()), asyncio.create_task(load.make_topics())]
    for _ in range(EXPIRIES):
        old = cluster.controller
        term = cluster.epoch(old)
        topics, records = len(load.topics), len(load.acknowledged)
        await cluster.expire_session(old.broker_id)
        await until(lambda: not old.controller.is_active or cluster.epoch(old) != term)  # noqa: B023
        await until(lambda: any(broker.controller.is_active for broker in cluster.brokers.values()))
        new = cluster.epoch()
        assert term is not None and new is not None
        assert new.controller_epoch > term.controller_epoch
        await until(lambda: len(load.topics) > topics and len(load.acknowledged) > records)  # noqa: B023
    load.over = True
    await asyncio.gather(*working)
    await until(lambda: sum(broker.controller.is_active for broker in cluster.brokers.values()) == 1)
    for topic in ["t", *load.topics]:
        await until(lambda: cluster.isr(topic) == ALL and cluster.leader(topic) >= 0)  # noqa: B023
    stored = await cluster.values(cluster.leader("t"), "t")
    assert set(load.acknowledged) <= set(stored)
    first_copies = list(dict.fromkeys(stored))
    assert [value for value in first_copies if value in set(load.acknowledged)] == load.acknowledged
