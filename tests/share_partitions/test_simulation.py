"""A share-partition whose leader and share coordinator fail over: no record is lost or delivered in vain.

A seed chooses what happens: members acquire, acknowledge, leave and let locks expire, acknowledgements are
applied in steps, or only in part because the member disconnects, requests to the share coordinator and their
responses are lost, delayed and repeated, followers lag, appends fail, another share coordinator takes over
with some of the uncommitted records, and another leader takes over while the former one still serves its
members. At the end, everything heals, and all records are delivered.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Final

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.share_coordinator.operations import Initialize, Operation, Result, rejected
from kafka_compat.share_coordinator.persister import SharePartitionKey
from kafka_compat.share_coordinator.retrying_persister import RETRY_MS, Respond, RetryingPersister
from kafka_compat.share_partitions import share_partition
from kafka_compat.share_partitions.acquisition import AcquiredRange, Acquisition, OffsetRange
from kafka_compat.share_partitions.changes import (
    ACCEPT,
    REJECT,
    RELEASE,
    Acknowledgement,
    Limits,
)
from kafka_compat.share_partitions.counts import ShareCounts
from kafka_compat.share_partitions.led_share_partition import LedSharePartition
from tests.groups.memory import ManualScheduler
from tests.share_coordinator.memory import COLD_MS, KEY, OTHER, ShareLog, coordinator_of
from tests.support import campaign
from tests.support.steps import result_of

SEEDS = range(1_000 if campaign.enabled() else 60)
MEMBERS: Final = ("a", "b", "c")
BATCH: Final = 4
LOCAL, REMOTE = 1, 2


class Record:
    """What members know of one record."""

    def __init__(self) -> None:
        self.done_in_term: int | None = None
        """The latest term of a leader when the delivery of the record was complete, as a member was told."""
        self.last_count = 0
        """The highest delivery count that a member knows to be stored."""
        self.counted_in_term = 0
        self.is_rejected = False
        self.deliveries = 0


class Replica:
    """A replica of a leader."""

    topic, partition, is_leader = "topic", 0, True

    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self.listeners: set[object] = set()


class Leader:
    """A broker that led the partition in one term, with its persister and its part of the share-partition."""

    dead_letters = None

    def __init__(self, world: World, term: int) -> None:
        self.world = world
        self.term = term
        self.scheduler = world.scheduler
        self.counts = ShareCounts()
        self.persister = RetryingPersister(
            local=lambda: world.coordinator,
            remote=self,
            metadata=world.metadata,
            create_topic=lambda done: None,
            scheduler=world.scheduler,
        )
        self.acquired: dict[int, tuple[str, int]] = {}
        """The member and the delivery count of each record, from its acquisition on until it is released,
        acknowledged or expires.
        """
        self.delivery_counts: dict[int, int] = {}
        self.replica = Replica(term)
        self.led = self.loaded()

    def loaded(self) -> LedSharePartition:
        led = LedSharePartition(self, KEY, self.replica)  # type: ignore[arg-type]
        self.delivery_counts.clear()
        led.load()
        return led

    # the interface Host

    def limits(self, group_id: str) -> Limits:
        return self.world.limits

    def resolve_start(self, group_id: str, replica: object, done: object) -> None:
        raise AssertionError("the start offset is known")

    def forget(self, led: LedSharePartition) -> None:
        led.close()

    def in_turn(self, job: object) -> None:
        job()  # type: ignore[operator]

    # the interface RemoteCoordinators

    def send(self, broker_id: int, key: SharePartitionKey, operation: Operation, respond: Respond) -> None:
        self.world.send(key, operation, respond)

    def close(self) -> None:
        self.led.close()
        self.persister.close()


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scheduler = ManualScheduler()
        self.scheduler.advance(1)
        self.limits = Limits(
            lock_duration_ms=self.random.choice((100, 2_000)),
            delivery_count_limit=self.random.choice((2, 3, 5)),
            max_record_locks=self.random.choice((10, 40)),
        )
        self.log = ShareLog()
        self.coordinator = coordinator_of(self.log, self.scheduler)
        self.coordinator.start()
        self.coordinator.load(0)
        self.metadata = MetadataCache("cluster", LOCAL)
        change = self.metadata.change()
        change.set_brokers({each: BrokerMetadata(each, {}, None) for each in (LOCAL, REMOTE)})
        change.publish()
        self.move_coordinator()
        self.coordinator.process(KEY, Initialize(1, 0), lambda result: None)
        self.log.replicate(10)
        self.loses = True
        """Whether requests to the share coordinator get lost."""
        self.end = 0
        self.records: dict[int, Record] = {}
        self.term = 1
        self.leaders = [Leader(self, 1)]
        self.unfinished: list[Steps[None]] = []
        """Acknowledgements that are being applied."""

    # the network

    def send(self, key: SharePartitionKey, operation: Operation, respond: Respond) -> None:
        def arrive() -> None:
            if self.loses and self.random.random() < 0.1:
                fail()
            else:
                self.coordinator.process(key, operation, answer)

        def answer(result: Result) -> None:
            if self.loses and self.random.random() < 0.1:
                fail()
            else:
                self.scheduler.call_later(self.delay_ms(), partial(respond, result))

        def fail() -> None:
            lost = rejected(ErrorCode.NETWORK_EXCEPTION)
            self.scheduler.call_later(self.random.choice((1, 50, 500)), partial(respond, lost))

        self.scheduler.call_later(self.delay_ms(), arrive)

    def delay_ms(self) -> int:
        return self.random.choice((0, 0, 1, 5, 200)) if self.loses else 0

    def move_coordinator(self) -> None:
        change = self.metadata.change()
        partition = PartitionMetadata(0, REMOTE, len(self.log.batches) + 1, (LOCAL, REMOTE), (LOCAL, REMOTE))
        change.put_topic(TopicMetadata(SHARE_STATE_TOPIC, OTHER, (partition,)))
        change.publish()

    # what happens

    def step(self) -> None:
        choices = (
            (self._produce, 6),
            (self._fetch, 25),
            (self._acknowledge, 25),
            (self._continue, 25),
            (self._replicate, 25),
            (self._wait, 25),
            (self._end_session, 2),
            (self._refuse, 1),
            (self._fail_over, 1),
            (self._elect, 1),
            (self._stop_former, 1),
        )
        happens = self.random.choices([each for each, _ in choices], [weight for _, weight in choices])[0]
        happens()

    def _produce(self) -> None:
        if self.end < 400:
            for offset in range(self.end, self.end + BATCH):
                self.records[offset] = Record()
            self.end += BATCH

    def _fetch(self) -> None:
        self.fetch(self.random.choice(self.leaders))

    def fetch(self, leader: Leader) -> list[AcquiredRange]:
        machine = leader.led.refresh()
        if machine is None:
            if leader.led.is_closed or leader.led.error:
                # As on a broker, the next fetch loads the share-partition again.
                leader.led.close()
                leader.led = leader.loaded()
            return []
        offset = machine.next_fetch_offset()
        if not machine.can_acquire or offset >= self.end:
            return []
        first = offset - offset % BATCH
        fetched = [OffsetRange(each, each + BATCH - 1) for each in range(first, self.end, BATCH)]
        member = self.random.choice(MEMBERS)
        now_ms = self.scheduler.monotonic_ms()
        acquired = Acquisition(
            machine,
            member,
            is_exact=self.random.random() < 0.5,
            max_records=self.random.choice((1, 5, 50)),
            batch_size=self.random.choice((1, 50)),
            now_ms=now_ms,
        ).run(offset, fetched[: self.random.choice((1, 2, 50))])
        leader.led.locked(now_ms, self.limits.lock_duration_ms)
        for each in acquired:
            for number in range(each.first, each.last + 1):
                self._delivered(leader, number, member, each.delivery_count)
        return acquired

    def _delivered(self, leader: Leader, offset: int, member: str, count: int) -> None:
        record = self.records[offset]
        record.deliveries += 1
        assert count <= self.limits.delivery_count_limit, f"{offset} is delivered {count} times"
        assert record.done_in_term is None or leader.term < record.done_in_term, f"{offset} is complete"
        # Within a term, a record is acquired again only after a release, which keeps its delivery count.
        assert count > leader.delivery_counts.get(offset, 0), (
            f"{offset} is delivered again with the count {count}"
        )
        if leader.term >= record.counted_in_term:
            assert count > record.last_count, f"the delivery count of {offset} was lost"
        leader.delivery_counts[offset] = count
        leader.acquired[offset] = (member, count)

    def _acknowledge(self) -> None:
        self.acknowledge(self.random.choice(self.leaders), (ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT))

    def acknowledge(self, leader: Leader, kinds: tuple[int, ...]) -> None:
        if not leader.acquired:
            return
        offset = self.random.choice(list(leader.acquired))
        member, _ = leader.acquired[offset]
        offsets = [offset]
        while self.random.random() < 0.8 and leader.acquired.get(offsets[-1] + 1, ("", 0))[0] == member:
            offsets.append(offsets[-1] + 1)
        types = [self.random.choice(kinds) for _ in offsets]
        counts = [leader.acquired.pop(each)[1] for each in offsets]
        if len(set(types)) == 1 and self.random.random() < 0.5:
            acknowledgement = Acknowledgement(offsets[0], offsets[-1], types[:1])
        else:
            acknowledgement = Acknowledgement(offsets[0], offsets[-1], types)
        steps = self._acknowledging(
            leader, member, acknowledgement, list(zip(offsets, types, counts, strict=True))
        )
        if self.loses and self.random.random() < 0.3:
            self.unfinished.append(steps)
        else:
            result_of(steps)

    def _acknowledging(
        self,
        leader: Leader,
        member: str,
        acknowledgement: Acknowledgement,
        told: list[tuple[int, int, int]],
    ) -> Steps[None]:
        led = leader.led
        steps = led.acknowledge(member, [acknowledgement], partial(self._acknowledged, leader, told))
        try:
            while True:
                # An acknowledgement of a record before the start offset always succeeds. Its lock has
                # expired.
                start_offset = self.end if led.machine is None else led.machine.start_offset
                told[:] = [each for each in told if each[0] >= start_offset]
                if next(steps, self) is self:
                    return
                yield None
        finally:
            steps.close()

    def _continue(self) -> None:
        """Continue an acknowledgement, or end it early, because the member has disconnected."""
        if not self.unfinished:
            return
        steps = self.random.choice(self.unfinished)
        if self.random.random() < 0.05:
            steps.close()
            self.unfinished.remove(steps)
        elif next(steps, self) is self:
            self.unfinished.remove(steps)

    def _acknowledged(self, leader: Leader, told: list[tuple[int, int, int]], code: ErrorCode) -> None:
        if code != ErrorCode.NONE:
            return
        for offset, kind, count in told:
            record = self.records[offset]
            is_done = kind != RELEASE or count >= self.limits.delivery_count_limit
            if is_done and record.done_in_term is None:
                # A former leader may deliver the record until it learns of the change.
                record.done_in_term = leader.term
            if record.last_count < count:
                record.last_count, record.counted_in_term = count, leader.term

    def _end_session(self) -> None:
        leader, member = self.random.choice(self.leaders), self.random.choice(MEMBERS)
        leader.led.release(member)
        leader.acquired = {key: value for key, value in leader.acquired.items() if value[0] != member}

    def _replicate(self) -> None:
        self.log.replicate(self.random.randint(1, 4))

    def _wait(self) -> None:
        self.scheduler.advance(self.random.choice((1, 1, 10, 100, 1_000)))
        if self.random.random() < 0.02:
            self.scheduler.advance(self.random.choice((COLD_MS, RETRY_MS)))

    def _refuse(self) -> None:
        fails = self.log.refuses is None and self.random.random() < 0.5
        self.log.refuses = ErrorCode.NOT_ENOUGH_REPLICAS if fails else None

    def _fail_over(self) -> None:
        """Another broker becomes the share coordinator, with some of the uncommitted records."""
        self.coordinator.unload(0)
        self.log.lose_leadership(self.random.randint(0, 2))
        self.log.refuses = None
        self.log.high_watermark = self.log.end_offset
        self.coordinator.load(0)
        self.move_coordinator()

    def _elect(self) -> None:
        """Another broker becomes the leader. The former one does not know it yet."""
        self.term += 1
        self.leaders.append(Leader(self, self.term))
        if self.random.random() < 0.5:
            self._stop_former()

    def _stop_former(self) -> None:
        """A former leader learns that it is not the leader."""
        if len(self.leaders) > 1:
            self.leaders.pop(0).close()

    # the end

    def heal(self) -> None:
        self.loses = False
        self.log.refuses = None
        while self.unfinished:
            result_of(self.unfinished.pop())
        while len(self.leaders) > 1:
            self._stop_former()
        self._settle(RETRY_MS + self.limits.lock_duration_ms)

    def _settle(self, duration_ms: int) -> None:
        for _ in range(4):
            self.log.replicate(1_000)
            self.scheduler.advance(duration_ms // 4)
            self.log.replicate(1_000)

    def deliver_all(self) -> None:
        """Let members accept everything that they can acquire."""
        (leader,) = self.leaders
        leader.acquired.clear()
        for _ in range(2_000):
            acquired = self.fetch(leader)
            while leader.acquired:
                self.acknowledge(leader, (ACCEPT,))
            self._settle(4)
            machine = leader.led.machine
            if acquired or machine is None:
                continue
            if machine.start_offset >= self.end:
                return
            if machine.has_gap and machine.next_fetch_offset() >= self.end:
                # As in Kafka, the start offset stays in a gap until a later record is acquired.
                self._produce()
        machine = leader.led.machine
        state = machine and [
            (run.first, run.last, run.state) for each in machine.batches for run in each.runs
        ]
        raise AssertionError(f"records are left before offset {self.end}: {state}")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_record_is_lost_although_leaders_and_share_coordinators_fail_over(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_partition, "_ACKNOWLEDGED_AT_ONCE", 1)
    world = World(seed)
    for _ in range(600):
        world.step()
    world.heal()
    world.deliver_all()
    assert all(record.deliveries for record in world.records.values())
