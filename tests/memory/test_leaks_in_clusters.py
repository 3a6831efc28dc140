"""Memory is freed without the garbage collector in a cluster of three brokers: replicas, fetchers and the
controller's state.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster.embedded import EmbeddedCluster
from tests.memory.churn import SHORT_EXPIRIES, churn_once
from tests.memory.expiries import EXPIRIES_OF_A_TEST, TIMES
from tests.memory.leftover_objects import MARK, counts, grown, nothing_left, without_collector

BROKERS = 3


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """The address of one of the brokers."""
    replicated = {
        "offsets.topic.replication.factor": str(BROKERS),
        "transaction.state.log.replication.factor": str(BROKERS),
    }
    with without_collector():
        cluster = EmbeddedCluster(tmp_path, BROKERS, {**SHORT_EXPIRIES, **EXPIRIES_OF_A_TEST, **replicated})
        await cluster.start()
        yield f"127.0.0.1:{cluster.port(1)}"
        await cluster.stop()


async def test_deleted_replicated_topics_do_not_leak_objects(address: str) -> None:
    async def act() -> None:
        await asyncio.to_thread(churn_once, address, MARK, BROKERS)

    await act()  # creates objects that the first such action needs
    await nothing_left()
    growth = []
    for _ in range(2):
        before = counts()
        for _ in range(TIMES):
            await act()
        await nothing_left()
        growth.append(await grown(before, TIMES))
        if not growth[-1]:
            return
    assert growth[0] & growth[1] == set()
