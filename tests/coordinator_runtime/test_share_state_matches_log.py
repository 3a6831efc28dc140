"""The state of a share coordinator always equals the state loaded from its log, and its committed state the
one loaded from the committed part of the log.

Hypothesis chooses the events: all operations with any epochs, deleted topics, snapshots of cold
share-partitions, pruning, lagging followers, failed appends, and lost leadership with uncommitted records.

The states are compared with those of coordinators that have just loaded the log, or its committed part, and
with those of machines that replay every record individually. Every operation gets exactly one result. A model
that merges the writes of each share-partition offset by offset must have the same batches.

KAFKA_COMPAT_CAMPAIGN=1 runs many examples. To shrink a failing example, run the test again without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from uuid import UUID

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.coordinator import ShareCoordinator
from kafka_compat.share_coordinator.operations import (
    Delete,
    Initialize,
    Operation,
    Read,
    ReadSummary,
    Result,
    Write,
)
from kafka_compat.share_coordinator.persister import SharePartitionKey, StateBatch
from kafka_compat.share_coordinator.records import Snapshot, decode_record
from kafka_compat.share_coordinator.share_partition_state import SharePartitionState, State
from tests.groups.memory import ManualScheduler
from tests.share_coordinator.batches import batches, model
from tests.share_coordinator.memory import COLD_MS, OTHER, TOPIC, ShareLog, coordinator_of

CAMPAIGN = bool(os.environ.get("KAFKA_COMPAT_CAMPAIGN"))
UPDATES_PER_SNAPSHOT = 3

keys = st.builds(
    SharePartitionKey, st.sampled_from(("g", "g", "h")), st.sampled_from((TOPIC, TOPIC, OTHER)), st.just(0)
)
epochs = st.sampled_from((1, 1, 1, 2, 0))
offsets = st.integers(-1, 35)
operations = st.one_of(
    st.builds(Initialize, epochs, offsets),
    st.builds(Read, epochs),
    st.builds(Write, epochs, epochs, offsets, st.integers(-1, 5), batches().map(tuple)),
    st.builds(Write, st.just(9), st.just(9), offsets, st.integers(-1, 5), batches().map(tuple)),
    st.builds(Delete),
    st.builds(ReadSummary, st.just(0)),
)

Stored = dict[SharePartitionKey, Snapshot]


def stored(machines: Iterable[SharePartitionState], which: str) -> Stored:
    """Return the current or the committed states."""
    found: Stored = {}
    for machine in machines:
        state: State | None = getattr(machine.state, which)
        if state is not None:
            assert machine.key is not None
            found[machine.key] = state.whole
    return found


def running(coordinator: ShareCoordinator) -> list[SharePartitionState]:
    return [one.machine for one in coordinator._runtime.running.values()]


def loaded(found: list[ReplayedBatch]) -> ShareCoordinator:
    log = ShareLog()
    log.batches = found
    coordinator = coordinator_of(log, ManualScheduler())
    coordinator.load(0)
    return coordinator


def replayed_one_by_one(found: list[ReplayedBatch]) -> list[SharePartitionState]:
    """Replay every record into new machines, without skipping any."""
    machines: dict[SharePartitionKey, SharePartitionState] = {}
    for batch in found:
        for key, value in batch.records:
            record = decode_record(key, value)
            assert record is not None
            machine = machines.setdefault(
                record.key, SharePartitionState(SnapshotRegistry(), UPDATES_PER_SNAPSHOT)
            )
            machine.replay(record, batch.end_offset, -1)
    return list(machines.values())


class ShareStates(RuleBasedStateMachine):
    """The events, and the invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.log = ShareLog()
        self.scheduler = ManualScheduler()
        self.deleted: set[UUID] = set()
        self.unanswered = 0
        self.has_failed = False
        self.merged: dict[SharePartitionKey, tuple[int, list[StateBatch]]] = {}
        """The start offset and all batches of each share-partition since its initialization."""
        self.coordinator = self.started()

    def started(self) -> ShareCoordinator:
        coordinator = coordinator_of(
            self.log,
            self.scheduler,
            lambda topic_id, partition: topic_id not in self.deleted,
            UPDATES_PER_SNAPSHOT,
        )
        coordinator.start()
        coordinator.load(0)
        return coordinator

    def expect(self) -> Callable[[Result], None]:
        self.unanswered += 1
        is_answered = False

        def answer(_: Result) -> None:
            nonlocal is_answered
            assert not is_answered, "a second result"
            is_answered = True
            self.unanswered -= 1

        return answer

    @rule(key=keys, operation=operations)
    def ask(self, key: SharePartitionKey, operation: Operation) -> None:
        before = self.log.end_offset
        self.coordinator.process(key, operation, self.expect())
        if self.log.end_offset == before:
            return
        start_offset, known = self.merged.get(key, (-1, []))
        match operation:
            case Initialize():
                self.merged[key] = (operation.start_offset, [])
            case Write():
                self.merged[key] = (
                    max(start_offset, operation.start_offset),
                    [*known, *operation.batches],
                )
            case Delete():
                del self.merged[key]

    @rule()
    def delete_topic(self) -> None:
        self.deleted = {OTHER}
        refuses = self.log.refuses
        self.coordinator.forget_topics(self.deleted)
        self.scheduler.advance()
        if refuses is None and not self.has_failed:
            self.merged = {key: value for key, value in self.merged.items() if key.topic_id != OTHER}
            assert not any(key.topic_id == OTHER for key in stored(running(self.coordinator), "current"))

    @rule()
    def create_topic(self) -> None:
        self.deleted = set()

    @rule(duration_ms=st.sampled_from((10, COLD_MS)))
    def advance(self, duration_ms: int) -> None:
        self.scheduler.advance(duration_ms)

    @rule(count=st.integers(1, 4))
    def replicate(self, count: int) -> None:
        self.log.replicate(count)

    @rule(fails=st.booleans())
    def fail(self, fails: bool) -> None:
        self.log.refuses = ErrorCode.NOT_ENOUGH_REPLICAS if fails else None

    @rule(kept=st.integers(0, 2))
    def fail_over(self, kept: int) -> None:
        """Another broker becomes the leader, and then this one again."""
        self.coordinator.unload(0)
        assert self.unanswered == 0
        self.log.lose_leadership(kept)
        self.log.refuses = None
        self.log.high_watermark = self.log.end_offset
        self.coordinator.load(0)
        self.merged = {
            key: (whole.start_offset, list(whole.batches))
            for key, whole in stored(running(self.coordinator), "current").items()
        }

    @rule()
    def restart(self) -> None:
        self.coordinator.close()
        assert self.unanswered == 0
        self.fail_over_after_restart()

    def fail_over_after_restart(self) -> None:
        self.log.replicate(1_000)
        self.coordinator = self.started()

    @invariant()
    def the_current_state_is_that_of_the_log(self) -> None:
        current = stored(running(self.coordinator), "current")
        since_start = self.log.since_start()
        assert current == stored(running(loaded(since_start)), "current")
        assert current == stored(replayed_one_by_one(self.log.batches), "current")
        assert {key: whole.batches for key, whole in current.items()} == {
            key: model(some, start_offset) for key, (start_offset, some) in self.merged.items()
        }

    @invariant()
    def the_committed_state_is_that_of_the_committed_log(self) -> None:
        committed = stored(running(self.coordinator), "committed")
        before = [batch for batch in self.log.since_start() if batch.end_offset <= self.log.high_watermark]
        assert committed == stored(running(loaded(before)), "current")

    @invariant()
    def nothing_waits_for_a_committed_log(self) -> None:
        if self.log.high_watermark == self.log.end_offset:
            assert self.unanswered == 0


def test_the_state_is_always_that_of_the_log() -> None:
    examples = settings(
        max_examples=2_000 if CAMPAIGN else 40,
        stateful_step_count=50,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate] + ([] if CAMPAIGN else [Phase.shrink]),
    )
    run_state_machine_as_test(ShareStates, settings=examples)
