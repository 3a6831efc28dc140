"""The current state of a group coordinator always equals the state loaded from its log, and its committed
state the one loaded from the committed part of the log.

Hypothesis chooses the events: members of the classic and the consumer protocol, which convert groups,
commits in and outside of transactions, deletions, lagging followers, failed appends, and lost leadership with
uncommitted records.

After every step, both states must equal those of coordinators that have just loaded the log, or its committed
part, and those of machines that replay every record individually. Every request gets exactly one response.

KAFKA_COMPAT_CAMPAIGN=1 runs many examples. To shrink a failing example, run the test again without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch, TransactionalProducer
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.rebalance import STABLE
from kafka_compat.groups.consumer.embedded_protocol import encode_assignment
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.consumer.member import PartitionEpochs
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.group import Group
from kafka_compat.groups.records import decode_record
from kafka_compat.groups.requests import Commit, JoinResult, Leaving, TopicPartition
from tests.coordinator_runtime.group_coordinator import RETENTION_MS, coordinator_of
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.classic.transcript import subscription
from tests.groups.consumer.topics import topic
from tests.groups.memory import ManualScheduler, join_request, position, sync_request
from tests.support.steps import result_of

CAMPAIGN = bool(os.environ.get("KAFKA_COMPAT_CAMPAIGN"))

PARTITIONS: tuple[TopicPartition, ...] = (("topic", 0), ("other", 0))
# The first value is the most likely one, so that events interact.
groups = st.sampled_from(("g", "g", "h"))
clients = st.sampled_from(("a", "a", "b", "static"))
some_partitions = st.sampled_from((PARTITIONS, PARTITIONS[:1], PARTITIONS[1:]))
producers = st.sampled_from((10, 10, 11))
fetched = st.sampled_from((1_000, 1_000, 0))
rarely = st.sampled_from((False, False, False, False, True))

Stored = dict[str, tuple[object, ...]]


def current(machines: Iterable[Group]) -> Stored:
    """Return the current state of the machines that have any."""
    return _stored(machines, "current")


def committed(machines: Iterable[Group]) -> Stored:
    """Return the committed state of the machines that have any."""
    return _stored(machines, "committed")


def _stored(machines: Iterable[Group], which: str) -> Stored:
    state: Stored = {}
    for group in machines:
        consumer, offsets = group.consumer.state, group.offsets
        classic = group.classic.rebalance.stored
        values = (consumer.metadata, consumer.target, classic._snapshot)
        tables = (consumer.members, consumer.targets, consumer.regexes, offsets.stored, offsets.pending)
        metadata, target, generation = (getattr(value, which) for value in values)
        contents = [dict(getattr(table, which)) for table in tables]
        if metadata is not None or generation is not None or any(contents):
            state[group.group_id] = (metadata, target, generation, contents)
    return state


def running(coordinator: GroupCoordinator) -> list[Group]:
    return [one.machine for one in coordinator._running.values()]


def loaded(batches: list[ReplayedBatch]) -> GroupCoordinator:
    log = ReplicatedLog()
    log.batches = batches
    coordinator = coordinator_of(log, ManualScheduler())
    coordinator.load(0)
    return coordinator


def replayed_one_by_one(batches: list[ReplayedBatch]) -> list[Group]:
    """Replay every record into new machines, without skipping any."""
    clock = coordinator_of(ReplicatedLog(), ManualScheduler())
    machines: dict[str, Group] = {}
    for batch in batches:
        if batch.committed is not None:
            for group in machines.values():
                group.replay_end_marker(batch.producer_id, batch.committed)
        for key, value in batch.records:
            record = decode_record(key, value)
            assert record is not None
            if record.group_id not in machines:
                machines[record.group_id] = clock._new_group(record.group_id, SnapshotRegistry())
            machines[record.group_id].replay(record, batch.end_offset, batch.producer_id)
    return list(machines.values())


class Groups(RuleBasedStateMachine):
    """The events, and the invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.log = ReplicatedLog()
        self.scheduler = ManualScheduler()
        self.coordinator = coordinator_of(self.log, self.scheduler)
        self.coordinator.start()
        self.coordinator.load(0)
        self.loaded_end = 0
        self.unanswered = 0
        self.offset = 0
        self.joined: dict[tuple[str, str], JoinResult] = {}
        self.consumers: dict[tuple[str, str], HeartbeatResult] = {}
        self.assigned: dict[tuple[str, str], PartitionEpochs] = {}
        self.open: set[int] = set()
        self.has_failed = False
        self.committed: list[ReplayedBatch] = []
        self.successor = loaded([])

    def expect(self, callback: Callable[[Any], None] = lambda _: None) -> Callable[[Any], None]:
        self.unanswered += 1
        is_answered = False

        def answer(result: Any) -> None:
            nonlocal is_answered
            assert not is_answered, "a second response"
            is_answered = True
            self.unanswered -= 1
            callback(result)

        return answer

    # Members

    @rule(
        group=groups,
        client=clients,
        topic=st.sampled_from(("topic", "other")),
        returns=st.booleans(),
        syncs=st.booleans(),
    )
    def join(self, group: str, client: str, topic: str, returns: bool, syncs: bool) -> None:
        known = self.joined.get((group, client))
        request = join_request(
            known.member_id if known is not None and not returns else "",
            group_instance_id=client if client == "static" else None,
            client_id=client,
            protocols=(("range", subscription([topic])),),
        )

        def joined(result: JoinResult) -> None:
            if not result.error:
                self.joined[group, client] = result
            elif result.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.joined.pop((group, client), None)

        self.coordinator.classic.join(group, request, self.expect(joined))
        self.scheduler.advance()
        if syncs:
            self.sync(group, client)

    @rule(group=groups, client=clients)
    def sync(self, group: str, client: str) -> None:
        known = self.joined.get((group, client))
        if known is not None:
            # The first member gets everything. The group can be converted to a consumer group.
            partitions: dict[str, tuple[int, ...]] = {"topic": (0, 1), "other": (0, 1, 2)}
            assignments = {
                one.member_id: encode_assignment({} if number else partitions, subscription([]))
                for number, one in enumerate(known.members)
            }
            request = sync_request(known.member_id, known.generation_id, assignments)
            self.coordinator.classic.sync(group, request, self.expect())

    @rule(group=groups, client=clients)
    def classic_heartbeat(self, group: str, client: str) -> None:
        known = self.joined.get((group, client))
        if known is not None:
            self.coordinator.classic.heartbeat(group, known.generation_id, known.member_id, None)

    @rule(group=groups, client=clients)
    def leave(self, group: str, client: str) -> None:
        known = self.joined.pop((group, client), None)
        if known is not None:
            leaving = Leaving(member_id=known.member_id, group_instance_id=None, reason="")
            result_of(self.coordinator.classic.leave(group, [leaving], self.expect()))

    @rule(
        group=groups,
        client=clients,
        topics=st.sampled_from((("topic",), ("topic", "other"))),
        action=st.sampled_from(("stay", "stay", "stay", "join", "resubscribe", "leave", "pause")),
        fetched=fetched,
    )
    def consumer_heartbeat(
        self, group: str, client: str, topics: tuple[str, ...], action: str, fetched: int
    ) -> None:
        known = self.consumers.get((group, client))
        joins = known is None or action == "join"
        epoch = 0 if known is None or joins else known.member_epoch
        if action in ("leave", "pause"):
            epoch = -2 if action == "pause" and client == "static" else -1
        request = Heartbeat(
            member_id=f"{client}-{epoch}" if client == "static" and joins else client,
            member_epoch=epoch,
            client_id=client,
            client_host="/127.0.0.1",
            instance_id=client if client == "static" else None,
            rebalance_timeout_ms=1_000 if joins else -1,
            topic_names=topics if joins or action == "resubscribe" else None,
            owned={} if joins else {key: list(value) for key, value in self.assigned[group, client].items()},
        )

        def answered(result: HeartbeatResult) -> None:
            if result.error:
                self.consumers.pop((group, client), None)
                return
            self.consumers[group, client] = result
            if result.assignment is not None:
                self.assigned[group, client] = result.assignment

        if known is None and not joins:
            return
        self.assigned.setdefault((group, client), {})
        self.coordinator.consumer.heartbeat(group, request, self.expect(answered))
        self.log.replicate(fetched)

    # Offsets

    @rule(group=groups, items=some_partitions, client=clients, fetched=fetched)
    def commit(self, group: str, items: tuple[TopicPartition, ...], client: str, fetched: int) -> None:
        known = self.joined.get((group, client))
        self.offset += 1
        request = Commit(
            generation_id=-1 if known is None else known.generation_id,
            member_id="" if known is None else known.member_id,
            group_instance_id=None,
            offsets=dict.fromkeys(items, position(self.offset)),
        )
        result_of(self.coordinator.offsets.commit(group, request, self.expect()))
        self.log.replicate(fetched)

    @rule(group=groups, items=some_partitions, producer=producers, fetched=fetched)
    def commit_in_a_transaction(
        self, group: str, items: tuple[TopicPartition, ...], producer: int, fetched: int
    ) -> None:
        self.offset += 1
        self.open.add(producer)
        request = Commit(
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            offsets=dict.fromkeys(items, position(self.offset)),
            producer=TransactionalProducer(producer, 0),
        )
        result_of(self.coordinator.offsets.commit(group, request, self.expect()))
        self.log.replicate(fetched)

    @rule(producer=producers, committed=st.sampled_from((True, True, False)), fetched=fetched)
    def end_a_transaction(self, producer: int, committed: bool, fetched: int) -> None:
        if producer not in self.open:
            return
        self.open.discard(producer)
        self.coordinator.end_transaction(0, producer, committed, self.log.append_marker(producer, committed))
        self.log.replicate(fetched)

    @rule(
        group=groups,
        items=some_partitions,
        what=st.sampled_from(("offsets", "group", "topics")),
        fetched=fetched,
    )
    def delete(self, group: str, items: tuple[TopicPartition, ...], what: str, fetched: int) -> None:
        if what == "offsets":
            result_of(self.coordinator.offsets.delete(group, items, self.expect()))
        elif what == "group":
            self.coordinator.delete_groups([group], self.expect())
        else:
            self.coordinator.offsets.forget_topic(topic(items[0][0], 10))
        self.log.replicate(fetched)

    # Time and the log

    @rule(duration_ms=st.sampled_from((100, 5_000, RETENTION_MS)))
    def time_passes(self, duration_ms: int) -> None:
        # Requests that wait for a record may time out before it is committed.
        self.has_failed |= duration_ms >= 5_000 and self.log.high_watermark < self.log.end_offset
        self.scheduler.advance(duration_ms)

    @rule(count=st.sampled_from((1, 2, 1_000)))
    def followers_fetch(self, count: int) -> None:
        self.log.replicate(count)

    @rule(
        refuses=st.sampled_from((None, None, None, ErrorCode.NOT_ENOUGH_REPLICAS)),
        is_under_min_isr=rarely,
    )
    def replicas_come_and_go(self, refuses: ErrorCode | None, is_under_min_isr: bool) -> None:
        self.log.refuses, self.log.is_under_min_isr = refuses, is_under_min_isr
        self.has_failed |= refuses is not None or is_under_min_isr

    @rule(happens=rarely, kept=st.integers(0, 3), has_crashed=st.booleans())
    def another_coordinator_takes_over(self, happens: bool, kept: int, has_crashed: bool) -> None:
        if not happens:
            return
        self.log.lose_leadership(kept)
        if has_crashed:
            self.coordinator.close()
            assert self.scheduler.pending == 0
            self.coordinator = coordinator_of(self.log, self.scheduler)
            self.coordinator.start()
        else:
            self.coordinator.unload(0)
        assert self.unanswered == 0
        self.log.refuses, self.log.is_under_min_isr, self.has_failed = None, False, False
        self.loaded_end = self.log.end_offset
        self.coordinator.load(0)
        self.scheduler.advance()

    # Invariants

    @invariant()
    def it_knows_what_a_coordinator_would_load(self) -> None:
        batches = self.log.before(max(self.log.high_watermark, self.loaded_end))
        if batches != self.committed:
            self.committed = batches
            self.successor = loaded(batches)
            assert current(running(self.successor)) == current(replayed_one_by_one(batches))
        machines = running(self.coordinator)
        assert committed(machines) == current(running(self.successor))
        assert current(machines) == current(replayed_one_by_one(self.log.batches))
        if not self.has_failed and self.log.high_watermark == self.log.end_offset:
            for group in running(self.coordinator):
                if group.classic.rebalance.state is STABLE and not group.consumer.state.exists:
                    assert self.successor.classic.describe(group.group_id)[1] == group.classic.describe()

    def teardown(self) -> None:
        self.coordinator.close()
        assert self.unanswered == 0
        assert self.scheduler.pending == 0


def test_groups_have_the_same_state_before_and_after_loading() -> None:
    run_state_machine_as_test(
        Groups,
        settings=settings(
            max_examples=5000 if CAMPAIGN else 150,
            stateful_step_count=80 if CAMPAIGN else 30,
            deadline=None,
            phases=set(Phase) - {Phase.explain} - ({Phase.shrink} if CAMPAIGN else set()),
        ),
    )


@pytest.mark.parametrize("returns_as_consumer", [False, True])
def test_replaced_static_members_have_no_deadlines(returns_as_consumer: bool) -> None:
    """A deadline of a member that was replaced would act on the group after its conversion."""
    events = Groups()
    events.consumer_heartbeat("g", "a", ("topic",), "stay", 1_000)
    if returns_as_consumer:
        events.join("g", "static", "topic", returns=False, syncs=False)
        events.consumer_heartbeat("g", "static", ("topic",), "stay", 1_000)
    else:
        events.consumer_heartbeat("g", "static", ("topic",), "stay", 1_000)
        events.join("g", "static", "topic", returns=False, syncs=False)
    (group,) = running(events.coordinator)
    with_deadlines = {timer.member_id for timer in group.classic.rebalance.timers.pending}
    assert with_deadlines == set(group.consumer.state.members.current)
    events.time_passes(60_000)
    events.it_knows_what_a_coordinator_would_load()
    events.teardown()


def test_a_member_that_could_not_be_stored_has_no_deadlines() -> None:
    events = Groups()
    events.consumer_heartbeat("g", "a", ("topic",), "stay", 1_000)
    events.replicas_come_and_go(refuses=ErrorCode.NOT_ENOUGH_REPLICAS, is_under_min_isr=False)
    events.consumer_heartbeat("g", "b", ("topic",), "stay", 1_000)
    (group,) = running(events.coordinator)
    assert {timer.member_id for timer in group.classic.rebalance.timers.pending} == {"a"}
    events.teardown()
