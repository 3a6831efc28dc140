"""Simulated quorums: the seven properties of Kafka, and random faults. Each run follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

from kafka_compat.coordination.raft import events
from kafka_compat.coordination.raft.events import VoterChange
from kafka_compat.coordination.raft.values import ReplicaKey, Role
from tests.coordination.raft.raft_world import World

HEALING_MS = 20_000
"""The time in which a healthy quorum must commit on all nodes."""


def simulate(seed: int) -> World:
    """Run one simulation. Raises Violation, or AssertionError if there is no progress after the faults."""
    scenario = SCENARIOS[seed % len(SCENARIOS)]
    return scenario(seed)


def settle(world: World, what: str = "") -> None:
    """Heal everything, and wait until a new record is committed on all nodes."""
    world.heal()
    world.start()
    for _ in range(HEALING_MS // 1000):
        if _progress(world):
            return
    roles = {
        node_id: (node.running.role.name, node.running.epoch, node.running.log.end, node.running.leader_id)
        for node_id, node in world.nodes.items()
    }
    raise AssertionError(f"no progress at {world.now_ms} ms {what}: {roles}")


def _progress(world: World) -> bool:
    if not world.run(500, lambda: world.leader() is not None):
        return False
    before = len(world.invariants.committed)
    world.propose()
    alive = world.alive()
    return world.run(
        1000,
        lambda: (
            len(world.invariants.committed) > before
            and all(world.nodes[node].applied == len(world.invariants.committed) for node in alive)
        ),
    )


def _elected(world: World, duration_ms: int = 10_000) -> None:
    assert world.run(duration_ms, lambda: world.leader() is not None), "no leader"


def _load(world: World, duration_ms: int, every_ms: int = 50) -> None:
    """Propose records for some time, and take a snapshot now and then."""
    for _ in range(duration_ms // every_ms):
        world.run(every_ms)
        world.propose(count=world.random.randrange(1, 4))
        if world.random.random() < 0.03:
            alive = world.alive()
            if alive:
                node = world.nodes[world.random.choice(alive)]
                world.take_snapshot(node, move_start=world.random.random() < 0.7)


def _world(seed: int, sizes: tuple[int, ...] = (3, 5)) -> World:
    chance = random.Random(seed)
    world = World(seed, chance.choice(sizes), chance.randrange(2))
    world.start()
    return world


# --- Kafka's seven properties


def elects_a_leader(seed: int) -> World:
    world = _world(seed, (1, 2, 3, 4, 5))
    _elected(world)
    settle(world)
    return world


def fails_over(seed: int) -> World:
    world = _world(seed)
    _elected(world)
    _load(world, 400)
    leader = world.leader()
    assert leader is not None
    world.kill(leader.key.node_id)
    epoch = world.nodes[min(world.alive())].running.epoch
    assert world.run(10_000, lambda: (new := world.leader()) is not None and new.running.epoch > epoch)
    _load(world, 200)
    settle(world)
    return world


def recovers_after_all_were_killed(seed: int) -> World:
    world = _world(seed)
    _elected(world)
    _load(world, 300)
    world.kill(*world.nodes)
    world.run(100)
    settle(world)
    return world


def progresses_beside_a_partitioned_minority(seed: int) -> World:
    world = _world(seed)
    _elected(world)
    _load(world, 200)
    voters = list(world.static)
    minority = world.random.sample(voters, (len(voters) - 1) // 2)
    world.partition(minority, [node for node in world.nodes if node not in minority])
    before = len(world.invariants.committed)
    for _ in range(16):
        _load(world, 500, 100)
        if len(world.invariants.committed) > before + 3:
            break
    else:
        raise AssertionError("no progress of the majority")
    settle(world)
    return world


def progresses_when_a_majority_is_reachable(seed: int) -> World:
    """Each voter reaches only a majority; one reaches all of it."""
    world = _world(seed, (5,))
    _elected(world)
    voters = list(world.static)
    cut = world.random.sample(voters, 2)
    for node in cut:
        for other in voters:
            if other != node and world.random.random() < 0.5:
                world.blocked |= {(node, other), (other, node)}
    _load(world, 2500, 100)
    settle(world)
    return world


def survives_leaders_that_fail_one_after_another(seed: int) -> World:
    world = _world(seed)
    for _ in range(3):
        _elected(world)
        _load(world, 200)
        leader = world.leader()
        if leader is None:
            continue
        world.kill(leader.key.node_id)
        world.run(world.random.randrange(1, 1500))
        world.start(leader.key.node_id)
    settle(world)
    return world


def survives_one_lost_log(seed: int) -> World:
    """A voter loses its log, but not its vote, while the other voters have everything."""
    world = _world(seed, (3, 5))
    settle(world)
    _load(world, 300)
    settle(world)
    world.run(1000)
    node_id = world.random.choice(list(world.static))
    world.kill(node_id)
    election = world.nodes[node_id].disk.election
    world.nodes[node_id].disk.wipe()
    world.nodes[node_id].disk.election = election
    world.nodes[node_id].applied = 0
    world.run(world.random.randrange(1, 3000))
    settle(world)
    return world


# --- random faults


def survives_chaos(seed: int) -> World:
    world = _world(seed)
    _elected(world)
    _chaos(world, rounds=4)
    settle(world)
    return world


def survives_chaos_with_changing_voters(seed: int) -> World:
    chance = random.Random(seed)
    world = World(seed, chance.choice((1, 2, 3)), 3, dynamic=True)
    world.start()
    _elected(world)
    _load(world, 200)
    for _ in range(4):
        leader = world.leader()
        if leader is not None:
            _change_voters(world, leader.key)
        if world.random.random() < 0.5:
            _chaos(world, rounds=1)
        else:
            _load(world, 300)
    settle(world)
    return world


def _change_voters(world: World, leader: ReplicaKey) -> None:
    chosen = world.random.choice(list(world.nodes.values())).key
    machine = world.nodes[leader.node_id].running
    change = VoterChange.ADD
    if chosen.node_id in machine.voters:
        change = VoterChange.REMOVE if len(machine.voters) > 1 else VoterChange.UPDATE
    endpoints = {"C": ("h", chosen.node_id)}
    world.send(leader.node_id, events.VoterChangeRequested(0, change, chosen, endpoints, 1000))


def _chaos(world: World, rounds: int) -> None:
    chance = world.random
    for _ in range(rounds):
        faults = world.faults
        faults.loss = chance.choice((0, 0, 0.05, 0.3))
        faults.duplication = chance.choice((0, 0.2))
        faults.long_delay = chance.choice((0, 0, 0.1))
        faults.slow_flush = chance.choice((0, 0, 0.5))
        chance.choice((_kill_some, _isolate_one, _split, _one_way, _resign, _nothing))(world)
        _load(world, chance.choice((200, 600, 1500)), 100)
        world.blocked = set()
        if chance.random() < 0.7:
            world.start()


def _kill_some(world: World) -> None:
    world.kill(*world.random.sample(list(world.nodes), world.random.randrange(1, len(world.nodes) + 1)))


def _isolate_one(world: World) -> None:
    leader = world.leader()
    one = leader.key.node_id if leader is not None else world.random.choice(list(world.nodes))
    world.partition([one], [node for node in world.nodes if node != one])


def _split(world: World) -> None:
    nodes = list(world.nodes)
    world.random.shuffle(nodes)
    at = world.random.randrange(len(nodes))
    world.partition(nodes[:at], nodes[at:])


def _one_way(world: World) -> None:
    """One node is heard by nobody, or hears nobody."""
    one = world.random.choice(list(world.nodes))
    if world.random.random() < 0.5:
        world.blocked = {(one, other) for other in world.nodes}
    else:
        world.blocked = {(other, one) for other in world.nodes}


def _resign(world: World) -> None:
    leader = world.leader()
    if leader is not None:
        world.send(leader.key.node_id, events.Resigning())
        world.run(20)
        world.kill(leader.key.node_id)


def _nothing(world: World) -> None:
    pass


def keeps_the_epoch_of_a_stable_quorum(seed: int) -> World:
    """A follower that is cut off and comes back, again and again, does not raise the epoch (KIP-996)."""
    world = _world(seed)
    settle(world)
    leader = world.leader()
    assert leader is not None
    epoch = leader.running.epoch
    followers = [node for node in world.static if node != leader.key.node_id]
    for _ in range(3):
        one = world.random.choice(followers)
        world.partition([one], [node for node in world.nodes if node != one])
        _load(world, world.random.randrange(2000, 6000), 250)
        world.blocked = set()
        _load(world, 600, 100)
    settle(world)
    assert leader.running.role is Role.LEADER
    assert leader.running.epoch == epoch, "the epoch was raised"
    return world


SCENARIOS: tuple[Callable[[int], World], ...] = (
    elects_a_leader,
    fails_over,
    recovers_after_all_were_killed,
    progresses_beside_a_partitioned_minority,
    progresses_when_a_majority_is_reachable,
    survives_leaders_that_fail_one_after_another,
    survives_one_lost_log,
    survives_chaos,
    survives_chaos_with_changing_voters,
    keeps_the_epoch_of_a_stable_quorum,
)
