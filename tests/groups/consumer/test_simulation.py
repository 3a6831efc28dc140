"""Clients of a consumer group whose coordinator fails over: no two clients have a partition at the same time.

A seed chooses what happens: clients join, resubscribe, leave, pause and die, responses are lost, topics grow,
followers lag, appends fail, and another coordinator takes over with some of the uncommitted records. The
clients behave like Kafka's: they give up partitions before they acknowledge, and abandon all of them when
they are fenced. At the end, everything heals, and each partition must have exactly one owner.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.metadata.cache import MetadataCache
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.consumer.topics import groups_of, topic
from tests.groups.memory import WALL_MS, ManualScheduler
from tests.groups.share.memory import no_share_groups
from tests.support import campaign

SEEDS = range(1_000 if campaign.enabled() else 60)
REBALANCE_MS: Final = 20_000
SILENT_MS: Final = 10_000
"""A client sends a heartbeat every few seconds, and at once when it has revoked partitions. One that has been
silent for longer may have been fenced."""
TOPICS = ("t", "u", "v")

Partition = tuple[str, int]


class Client:
    """A client that has the partitions `owned`. It knows that it is a member if `epoch` is positive."""

    def __init__(self, name: str, instance_id: str | None, topics: tuple[str, ...]) -> None:
        self.name = name
        self.instance_id = instance_id
        self.topics = topics
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.must_tell_all = True
        self.is_waiting = False
        """Whether a heartbeat has no response yet. A client sends one at a time."""
        self.heard_ms = 0
        """When the last response arrived."""


class SlowClock(ManualScheduler):
    """A scheduler whose clock advances by a millisecond with each reading: most events take several turns."""

    def monotonic_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms


class World:
    def __init__(self, seed: int, turns: int = 0) -> None:
        """`turns` is the weight of a turn for long work, or 0 if no work takes long."""
        self.turns = turns
        self.random = random.Random(seed)
        self.metadata = MetadataCache("cluster", 1)
        for name in TOPICS:
            self.metadata.put_topic(topic(name, self.random.randint(1, 5)))
        self.log = ReplicatedLog()
        self.scheduler = SlowClock() if turns else ManualScheduler()
        self.interval_ms = self.random.choice((0, 1_000))
        self.clients: dict[str, Client] = {}
        self.count = 0
        self.loses_responses = True
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(
            coordinator_log=self.log,
            scheduler=self.scheduler,
            settings=GroupSettings(),
            now_ms=lambda: WALL_MS + self.scheduler.now_ms,
            partition_exists=lambda name, partition: True,
            consumer_groups=groups_of(self.metadata, self.interval_ms, 100),
            share_groups=no_share_groups(),
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
            (self.scheduler.run_next, self.turns),
            (self._grow, 1),
            (self._refuse, 1),
            (self._fail_over, 1),
        )
        happens = self.random.choices([each for each, _ in choices], [weight for _, weight in choices])[0]
        happens()
        self.check()

    def _join(self) -> None:
        if len(self.clients) < 5:
            self.count += 1
            taken = {client.instance_id for client in self.clients.values()}
            instance = self.random.choice((None, None, "one", "two"))
            topics = tuple(self.random.sample(TOPICS, self.random.randint(1, 3)))
            name = f"c{self.count}"
            self.clients[name] = Client(name, None if instance in taken else instance, topics)

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
        tells = client.must_tell_all
        owned: dict[object, list[int]] = {}
        for name, partition in sorted(client.owned):
            owned.setdefault(self.metadata.topics[name].topic_id, []).append(partition)
        request = Heartbeat(
            member_id=client.name,
            member_epoch=client.epoch,
            client_id=client.name,
            client_host="/127.0.0.1",
            instance_id=client.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if tells else -1,
            topic_names=client.topics if tells else None,
            owned=owned if client.epoch else {},  # type: ignore[arg-type]
        )
        sent_topics = client.topics

        def answered(result: HeartbeatResult) -> None:
            client.is_waiting = False
            if self.clients.get(client.name) is not client:
                return
            if self.loses_responses and self.random.random() < 0.1:
                client.must_tell_all = True
                return
            self._learn(client, result, sent_topics)

        self.coordinator.consumer.heartbeat("g", request, answered)

    def _learn(self, client: Client, result: HeartbeatResult, sent_topics: tuple[str, ...]) -> None:
        if result.error:
            if result.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                client.epoch = 0
                client.owned.clear()
            client.must_tell_all = True
            return
        client.heard_ms = self.scheduler.now_ms
        client.must_tell_all = client.topics != sent_topics
        client.epoch = result.member_epoch
        if result.assignment is not None:
            assigned = {
                (self.metadata.topic_name(topic_id) or "", partition)
                for topic_id, numbers in result.assignment.items()
                for partition in numbers
            }
            client.owned = assigned

    def _resubscribe(self) -> None:
        client = self._any()
        if client is not None:
            client.topics = tuple(self.random.sample(TOPICS, self.random.randint(1, 3)))
            client.must_tell_all = True

    def _leave(self) -> None:
        client = self._any()
        if client is not None and client.epoch:
            del self.clients[client.name]
            request = Heartbeat(
                client.name, -1, client.name, "/127.0.0.1", instance_id=client.instance_id, owned={}
            )
            self.coordinator.consumer.heartbeat("g", request, lambda result: None)

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

    def _fail_over(self) -> None:
        self.log.lose_leadership(self.random.randint(0, 3))
        self.log.refuses = None
        self.coordinator.close()
        # What the new leader has becomes committed.
        self.log.replicate(1_000)
        self.coordinator = self._new_coordinator()

    # What must hold

    def check(self) -> None:
        owners: dict[Partition, str] = {}
        for client in self.clients.values():
            if self.scheduler.now_ms - client.heard_ms >= SILENT_MS:
                continue
            for partition in client.owned:
                assert partition not in owners, (partition, owners[partition], client.name)
                owners[partition] = client.name

    def heal(self) -> None:
        self.loses_responses, self.log.refuses = False, None
        for _ in range(40):
            for client in list(self.clients.values()):
                self.beat(client)
                self.log.replicate(1_000)
            self.scheduler.advance(2_000)
            self.log.replicate(1_000)
            self.check()
        # Members that died are fenced at the end of their sessions.
        subscribed = {name for client in self.clients.values() for name in client.topics}
        expected = {
            (name, each.partition) for name in subscribed for each in self.metadata.topics[name].partitions
        }
        assert {partition for client in self.clients.values() for partition in client.owned} == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners_although_the_coordinator_fails_over(seed: int) -> None:
    world = World(seed)
    for _ in range(300):
        world.step()
    world.heal()
    world.coordinator.close()
    assert world.scheduler.pending == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners_although_events_take_long(seed: int) -> None:
    world = World(seed, turns=40)
    for _ in range(400):
        world.step()
    world.heal()
    world.coordinator.close()
    assert world.scheduler.pending == 0
