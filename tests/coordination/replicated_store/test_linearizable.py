"""Histories of clients of a quorum are linearizable, whatever happens to appends, leaders and processes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from kafka_compat.coordination.store.metadata_store import Create, SetData
from kafka_compat.testing.simulation.loop import SimulatedLoop
from tests.coordination.replicated_store.simulated_quorum import SimulatedQuorum
from tests.coordination.replicated_store.tree_history import Operation, is_linearizable
from tests.coordination.replicated_store.workload import Workload
from tests.support import campaign

FAULTS = {"lost": 0.05, "twice": 0.05, "unknown": 0.05, "behind": 0.02}
CLIENTS = 2


def simulate(seed: int, main: Coroutine[Any, Any, None]) -> None:
    loop = SimulatedLoop(seed, timeout_s=3600)
    try:
        loop.run_until_complete(main)
    finally:
        loop.close()


async def play(seed: int, count: int) -> None:
    quorum = SimulatedQuorum(seed, FAULTS)
    chance = random.Random(f"{seed} workload")
    workload = Workload(quorum, chance, count)
    for node in list(quorum.nodes.values()):
        workload.start(node, CLIENTS)

    async def disturb() -> None:
        while workload.left > 0:
            await asyncio.sleep(chance.uniform(0.05, 0.5))  # simulated time
            if chance.random() < 0.6:
                quorum.change_leader()
            else:
                node_id = chance.choice([node_id for node_id in quorum.nodes if node_id != quorum.leader_id])
                await workload.restart(node_id, from_snapshot=chance.random() < 0.5, clients=CLIENTS)

    await disturb()
    await workload.run_to_its_end()
    await quorum.equal()
    assert workload.problems == []
    assert is_linearizable(workload.history) is None
    await asyncio.sleep(2)  # simulated time, for the sessions of killed processes to expire
    await quorum.equal()
    assert {len(node.store.machine.sessions) for node in quorum.nodes.values()} == {0}
    for node in quorum.nodes.values():
        assert list(node.store._outstanding()) == []
    quorum.close()


@pytest.mark.parametrize("seed", range(campaign.rounds(3, 40)))
def test_a_history_with_faults_is_linearizable_and_all_nodes_have_the_same_tree(seed: int) -> None:
    simulate(seed, play(seed, campaign.rounds(150, 500)))


@pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")
def test_a_history_of_10000_operations_is_linearizable() -> None:
    simulate(0, play(0, 10_000))


def test_the_checker_finds_a_stale_read_and_a_doubled_write() -> None:
    create = Operation("multi", 1, [Create("/a", b"1")])
    create.end(("/a",))
    write = Operation("multi", 1, [SetData("/a", b"2")])
    write.end((1,))
    stale = Operation("read", 2, path="/a")
    stale.end((b"1", 0, 0, 0))
    assert is_linearizable([create, write]) is None
    assert is_linearizable([create, write, stale]) == str(stale)
    stale.begin = write.begin
    assert is_linearizable([create, write, stale]) is None
    doubled = Operation("multi", 1, [SetData("/a", b"3")])
    doubled.end((3,))
    assert is_linearizable([create, write, doubled]) == str(doubled)
