"""Members of a share group whose coordinator fails over: they get only partitions with an initialized state.

A seed chooses what happens: members join, resubscribe, leave and die, responses are lost, topics grow,
followers lag, appends fail, the share coordinator is slow or fails, and another coordinator takes over with
some of the uncommitted records. At the end, everything heals, and each partition must have enough members.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.share_coordinator.persister import SharePartitionKey
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.consumer.topics import groups_of, topic
from tests.groups.memory import WALL_MS, ManualScheduler
from tests.groups.share.memory import MemoryPersister, share_groups_of
from tests.support import campaign

SEEDS = range(1_000 if campaign.enabled() else 40)
TOPICS = ("t", "u", "v")

Partition = tuple[str, int]


class Client:
    """A client that has the partitions `owned`. It knows that it is a member if `epoch` is positive."""

    def __init__(self, name: str, topics: tuple[str, ...]) -> None:
        self.name = name
        self.topics = topics
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.must_tell_all = True
        self.is_waiting = False
        """Whether a heartbeat has no response yet. A client sends one at a time."""


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.metadata = MetadataCache("cluster", 1)
        for name in TOPICS:
            self.metadata.put_topic(topic(name, self.random.randint(1, 5)))
        self.log = ReplicatedLog()
        self.scheduler = ManualScheduler()
        self.persister = MemoryPersister()
        self.interval_ms = self.random.choice((0, 1_000))
        self.clients: dict[str, Client] = {}
        self.count = 0
        self.loses_responses = True
        self.coordinator = self.new_coordinator()

    def new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(
            coordinator_log=self.log,
            scheduler=self.scheduler,
            settings=GroupSettings(),
            now_ms=lambda: WALL_MS + self.scheduler.now_ms,
            partition_exists=lambda name, partition: True,
            consumer_groups=groups_of(self.metadata, 0, 100),
            share_groups=share_groups_of(
                self.metadata, self.persister, assignment_interval_ms=self.interval_ms
            ),
        )
        coordinator.load(0)
        self.scheduler.advance()
        return coordinator

    # What happens

    def step(self) -> None:
        choices = (
            (self._beat_any, 60),
            (self._replicate, 25),
            (self._join, 4),
            (self._resubscribe, 2),
            (self._leave, 2),
            (self._die, 1),
            (self._wait, 6),
            (self._grow, 1),
            (self._refuse, 1),
            (self._disturb, 3),
            (self._fail_over, 1),
        )
        happens = self.random.choices([each for each, _ in choices], [weight for _, weight in choices])[0]
        happens()
        self.check()

    def _join(self) -> None:
        if len(self.clients) < 6:
            self.count += 1
            topics = tuple(self.random.sample(TOPICS, self.random.randint(1, 3)))
            self.clients[f"c{self.count}"] = Client(f"c{self.count}", topics)

    def _any(self) -> Client | None:
        return self.random.choice(list(self.clients.values())) if self.clients else None

    def _beat_any(self) -> None:
        client = self._any()
        if client is not None:
            self.beat(client)

    def beat(self, client: Client) -> None:
        if client.is_waiting:
            return
        client.is_waiting = True
        names = client.topics if client.must_tell_all else None
        request = ShareHeartbeat(client.name, client.epoch, client.name, "/127.0.0.1", None, names)
        sent_topics = client.topics

        def answered(result: ShareHeartbeatResult) -> None:
            client.is_waiting = False
            if self.clients.get(client.name) is not client:
                return
            if self.loses_responses and self.random.random() < 0.1:
                client.must_tell_all = True
                return
            self._learn(client, result, sent_topics)

        self.coordinator.share.heartbeat("g", request, answered)

    def _learn(self, client: Client, result: ShareHeartbeatResult, sent_topics: tuple[str, ...]) -> None:
        if result.error:
            if result.error in (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ):
                client.epoch = 0
                client.owned.clear()
            client.must_tell_all = True
            return
        client.must_tell_all = client.topics != sent_topics
        client.epoch = result.member_epoch
        if result.assignment is not None:
            client.owned = {
                (self.metadata.topic_name(topic_id) or "", partition)
                for topic_id, numbers in result.assignment.items()
                for partition in numbers
            }

    def _resubscribe(self) -> None:
        client = self._any()
        if client is not None:
            client.topics = tuple(self.random.sample(TOPICS, self.random.randint(1, 3)))
            client.must_tell_all = True

    def _leave(self) -> None:
        client = self._any()
        if client is not None and client.epoch:
            del self.clients[client.name]
            request = ShareHeartbeat(client.name, -1, client.name, "/127.0.0.1")
            self.coordinator.share.heartbeat("g", request, lambda result: None)

    def _die(self) -> None:
        client = self._any()
        if client is not None:
            del self.clients[client.name]

    def _wait(self) -> None:
        self.scheduler.advance(self.random.choice((100, 1_000, 1_000, 10_000)))

    def _replicate(self) -> None:
        self.log.replicate(self.random.choice((1, 2, 1_000)))

    def _grow(self) -> None:
        name = self.random.choice(TOPICS)
        self.metadata.put_topic(topic(name, len(self.metadata.topics[name].partitions) + 1))
        self.coordinator.topics_changed([name])

    def _refuse(self) -> None:
        self.log.refuses = self.random.choice((None, ErrorCode.NOT_ENOUGH_REPLICAS))

    def _disturb(self) -> None:
        """Let the share coordinator be slow, fail, or recover."""
        self.persister.refuse = self.random.choice((None, None, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self.persister.hold = self.random.random() < 0.5
        if not self.persister.hold or self.random.random() < 0.3:
            self.persister.release()

    def _fail_over(self) -> None:
        self.log.lose_leadership(self.random.randint(0, 3))
        self.log.refuses = None
        self.coordinator.close()
        # What the new leader has becomes committed.
        self.log.replicate(1_000)
        self.coordinator = self.new_coordinator()

    # What must hold

    def check(self) -> None:
        for client in self.clients.values():
            for name, partition in client.owned:
                key = SharePartitionKey("g", self.metadata.topics[name].topic_id, partition)
                assert key in self.persister.states, (client.name, name, partition)

    def heal(self) -> None:
        self.loses_responses, self.log.refuses = False, None
        self.persister.hold, self.persister.refuse = False, None
        self.persister.release()
        for _ in range(40):
            for client in list(self.clients.values()):
                self.beat(client)
                self.log.replicate(1_000)
            self.scheduler.advance(2_000)
            self.log.replicate(1_000)
            self.check()
        # Members that died are fenced at the end of their sessions.
        subscribed = Counter(name for client in self.clients.values() for name in client.topics)
        expected = {
            (name, each.partition) for name in subscribed for each in self.metadata.topics[name].partitions
        }
        assert {partition for client in self.clients.values() for partition in client.owned} == expected

    def check_loaded(self) -> None:
        """Check that another coordinator loads the state that clients see."""
        described = self.coordinator.share.describe("g")
        self.coordinator.close()
        self.coordinator = self.new_coordinator()
        error, view = self.coordinator.share.describe("g")
        assert error == described[0]
        if view is None or described[1] is None:
            assert view is described[1]
            return
        assert view[:2] == described[1][:2]
        assert dict(view.members) == dict(described[1].members)
        assert view.partition_states == described[1].partition_states


@pytest.mark.parametrize("seed", SEEDS)
def test_only_initialized_partitions_are_assigned_although_coordinators_fail_over(seed: int) -> None:
    world = World(seed)
    for _ in range(300):
        world.step()
    world.heal()
    world.check_loaded()
    world.coordinator.close()
    assert world.scheduler.pending == 0
