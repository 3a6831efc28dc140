"""Random clients of one coordinator, with delayed and failed commits and broker restarts.

Every request gets exactly one response, the group's state stays consistent, and acknowledged commits are in
the log. When all clients stop, the group becomes empty and no request is left waiting.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.rebalance import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Rebalance,
)
from kafka_compat.groups.requests import Commit, JoinResult, Leaving, Sync, SyncResult
from tests.groups.classic.transcript import subscription
from tests.groups.memory import Coordinator, MemoryLog, join_request, position
from tests.support.steps import result_of

STEPS = 150
PROTOCOLS = (
    (("range", subscription(["topic"])),),
    (("range", subscription(["topic"])), ("sticky", subscription(["topic"]))),
    (("sticky", subscription(["topic", "other"])), ("range", subscription(["topic", "other"]))),
)


class Client:
    """Behaves like a typical client, with occasional deviations."""

    def __init__(self, world: World, name: str, instance: str | None) -> None:
        self.world = world
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.generation_id = -1
        self.joined_at: Coordinator | None = None
        self.leads: tuple[str, ...] = ()

    def act(self) -> None:
        choice = self.world.random.random()
        if choice < 0.35:
            self.join()
        elif choice < 0.6:
            self.sync()
        elif choice < 0.8:
            self.heartbeat()
        elif choice < 0.95:
            self.commit()
        elif choice < 0.98:
            self.leave()
        else:
            self.member_id = ""

    def join(self) -> None:
        random = self.world.random
        version_has_ids = random.random() < 0.7
        request = join_request(
            self.member_id,
            group_instance_id=self.instance,
            client_id=self.name,
            protocols=random.choice(PROTOCOLS),
            session_timeout_ms=random.choice((6_000, 10_000)),
            rebalance_timeout_ms=random.choice((5_000, 20_000)),
            requires_known_member_id=version_has_ids and self.instance is None,
            supports_skipping_assignment=random.random() < 0.5,
        )
        self.world.coordinator.classic.join("g", request, self.world.expect(self.joined))

    def joined(self, result: JoinResult) -> None:
        if result.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = result.member_id
        elif result.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        if not result.error:
            # A generation that was not stored is lost with its coordinator, and its number is used again.
            assert result.generation_id >= self.generation_id or self.joined_at is not self.world.coordinator
            self.joined_at = self.world.coordinator
            self.generation_id = result.generation_id
            self.leads = tuple(member.member_id for member in result.members)
            if self.leads:
                assert result.leader_id == result.member_id and result.member_id in self.leads

    def sync(self) -> None:
        generation_id = self.generation_id - (self.world.random.random() < 0.1)
        request = Sync(
            generation_id=generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=None,
            protocol_name=None,
            assignments={one: f"{generation_id}/{one}".encode() for one in self.leads},
        )

        def synced(result: SyncResult) -> None:
            # A member never receives the assignment of a different member or generation.
            if not result.error and result.assignment:
                assigned_generation, _, _ = result.assignment.partition(b"/")
                assert int(assigned_generation) == generation_id

        self.world.coordinator.classic.sync("g", request, self.world.expect(synced))

    def heartbeat(self) -> None:
        self.world.coordinator.classic.heartbeat("g", self.generation_id, self.member_id, self.instance)

    def commit(self) -> None:
        world = self.world
        partition = ("topic", world.random.randrange(3))
        world.last_offset += 1
        offset = world.last_offset
        simple = world.random.random() < 0.2
        request = Commit(
            generation_id=-1 if simple else self.generation_id,
            member_id="" if simple else self.member_id,
            group_instance_id=None if simple else self.instance,
            offsets={partition: position(offset)},
        )

        def committed(errors: Any) -> None:
            if not errors[partition]:
                world.acknowledged[partition] = max(offset, world.acknowledged.get(partition, 0))

        result_of(world.coordinator.offsets.commit("g", request, world.expect(committed)))

    def leave(self) -> None:
        leaving = Leaving(member_id=self.member_id, group_instance_id=self.instance, reason="random")
        result_of(self.world.coordinator.classic.leave("g", [leaving], self.world.expect(lambda _: None)))


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log = MemoryLog(shard_count=1)
        self.settings = {
            "group_initial_rebalance_delay_ms": self.random.choice((0, 1_000)),
            "group_max_size": self.random.choice((3, 100)),
        }
        self.coordinator = Coordinator(self.log, load=True, **self.settings)
        self.unanswered = 0
        self.last_offset = 0
        self.acknowledged: dict[tuple[str, int], int] = {}
        names = [f"c{number}" for number in range(self.random.randint(2, 6))]
        self.clients = [Client(self, name, self.random.choice((None, None, name))) for name in names]

    def expect(self, callback: Any) -> Any:
        self.unanswered += 1
        answered = False

        def answer(result: Any) -> None:
            nonlocal answered
            assert not answered, "a second response"
            answered = True
            self.unanswered -= 1
            callback(result)

        return answer

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.75:
            self.random.choice(self.clients).act()
        elif choice < 0.9:
            self.coordinator.scheduler.advance(self.random.choice((0, 100, 1_000, 5_000)))
        elif choice < 0.94:
            self.log.hold = True
        elif choice < 0.98:
            self.release()
        elif choice < 0.99:
            self.log.refuse = self.random.choice((None, ErrorCode.NOT_ENOUGH_REPLICAS))
        else:
            self.restart()

    def release(self) -> None:
        self.log.hold = False
        self.log.commit(self.random.choice((ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)))

    def restart(self) -> None:
        """Restart the coordinator: the old one responds to all waiting requests, and the new one loads the
        log.
        """
        self.release()
        self.coordinator.close()
        assert self.unanswered == 0
        self.coordinator = Coordinator(self.log, load=True, **self.settings)

    def check(self) -> None:
        running = self.coordinator._running.get("g")
        if running is None:
            return
        group: Rebalance = running.machine.classic.rebalance
        roster = group.roster
        members = set(roster.members)
        assert roster.leader_id in members if members else roster.leader_id is None
        assert set(roster.static_ids.values()) == {
            one.member_id for one in roster.members.values() if one.is_static
        }
        assert set(roster.awaiting_join) | set(roster.awaiting_sync) | roster.unsynced <= members
        assert not roster.pending & members
        if roster.awaiting_sync:
            assert group.state is COMPLETING_REBALANCE
        if group.state is EMPTY:
            assert not members
        if group.state in (STABLE, COMPLETING_REBALANCE):
            assert members
            assert all(group.protocol_name in dict(one.protocols) for one in roster.members.values())
        if group.state is PREPARING_REBALANCE:
            assert not roster.awaiting_sync and not roster.unsynced


@pytest.mark.parametrize("seed", range(200))
def test_every_request_from_random_clients_gets_one_response(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
        world.check()
    # Stop all clients: all waiting requests must complete.
    world.log.hold, world.log.refuse = False, None
    world.release()
    world.coordinator.scheduler.advance(1_000_000)
    world.check()
    assert world.unanswered == 0
    _, group = world.coordinator.classic.describe("g")
    assert group is None or group.state is EMPTY
    # A new coordinator that loads the log has all acknowledged offsets.
    successor = Coordinator(world.log, load=True, **world.settings)
    for partition, offset in world.acknowledged.items():
        _, fetched = successor.offsets.fetch("g", [partition], require_stable=False)
        stored, _ = fetched[partition]
        assert stored is not None and stored.offset >= offset
