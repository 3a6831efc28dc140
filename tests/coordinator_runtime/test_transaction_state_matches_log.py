"""The state of a transaction coordinator always equals the state loaded from the committed part of its log.

Hypothesis chooses the events: producers that start, stop and time out, delayed or rejected markers, expiring
ids, lagging followers, failed appends, and lost leadership.

After every step, the stored state must equal the state of a coordinator that has just loaded the committed
part of the log. Every request gets exactly one response, and the outcome of a transaction never changes.

KAFKA_COMPAT_CAMPAIGN=1 runs many examples. To shrink a failing example, run the test again without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.coordinator import TransactionCoordinator, TransactionSettings
from kafka_compat.transactions.marker_writer import Marker, MarkerCallback
from kafka_compat.transactions.records import decode_record, encode_record
from kafka_compat.transactions.status import (
    IdentityResult,
    ProducerIdentity,
    StatusRecord,
    TopicPartition,
    TransactionState,
)
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.memory import WALL_MS, ManualScheduler

CAMPAIGN = bool(os.environ.get("KAFKA_COMPAT_CAMPAIGN"))
TIMEOUT_MS = 5_000
EXPIRATION_MS = 60_000
OUTCOMES = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}

ids = st.sampled_from(("x", "y"))
partitions = st.sampled_from((("a", 0), ("a", 1), ("b", 0)))


class LatePartitions:
    """A MarkerWriter whose partitions respond when `answer` is called."""

    def __init__(self) -> None:
        self.waiting: list[tuple[TopicPartition, MarkerCallback]] = []

    def exists(self, partition: TopicPartition) -> bool:
        return True

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], done: MarkerCallback) -> None:
        self.waiting += [(partition, done) for partition in partitions]

    def answer(self, error: ErrorCode) -> None:
        waiting, self.waiting = self.waiting, []
        for partition, done in waiting:
            done(partition, error)


def coordinator_of(
    log: ReplicatedLog, scheduler: ManualScheduler, partitions: LatePartitions, version: int
) -> TransactionCoordinator:
    return TransactionCoordinator(
        coordinator_log=log,
        markers=partitions,
        scheduler=scheduler,
        settings=TransactionSettings(
            transactional_id_expiration_ms=EXPIRATION_MS,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000,
            transaction_remove_expired_transaction_cleanup_interval_ms=EXPIRATION_MS // 4,
            transaction_version=version,
        ),
        now_ms=lambda: WALL_MS + scheduler.now_ms,
    )


def stored(coordinator: TransactionCoordinator, version: int) -> dict[str, bytes | None]:
    """Return the stored state of each id as a record, because version 0 of the format lacks some fields."""
    return {
        key: encode_record(StatusRecord(key, running.machine.stored.committed), version)[1]
        for key, running in coordinator._running.items()
        if running.machine.stored.committed is not None
    }


def loaded(batches: list[ReplayedBatch], version: int) -> TransactionCoordinator:
    log = ReplicatedLog()
    log.batches = batches
    scheduler = ManualScheduler()
    coordinator = coordinator_of(log, scheduler, LatePartitions(), version)
    coordinator.load(0, 0)
    scheduler.advance()
    return coordinator


class Transactions(RuleBasedStateMachine):
    """The events, and the invariants."""

    @initialize(version=st.sampled_from((0, 2)))
    def begin(self, version: int) -> None:
        self.version = version
        self.log = ReplicatedLog()
        self.scheduler = ManualScheduler()
        self.partitions = LatePartitions()
        self.unanswered = 0
        self.next_producer_id = 100
        self.identities: dict[str, ProducerIdentity] = {}
        self.start()

    def start(self) -> None:
        self.coordinator = coordinator_of(self.log, self.scheduler, self.partitions, self.version)
        self.coordinator.start()
        self.load()

    def load(self) -> None:
        self.loaded_end = self.log.end_offset
        self.coordinator.load(0, 1)
        self.scheduler.advance()

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

    # Producers

    @rule(name=ids, is_known=st.booleans())
    def init(self, name: str, is_known: bool) -> None:
        producer_id = -1
        if self.coordinator.needs_producer_id(name):
            producer_id = self.next_producer_id = self.next_producer_id + 1
        expected = self.identities.get(name) if is_known else None

        def initiated(result: IdentityResult) -> None:
            if not result.error:
                self.identities[name] = result.identity

        self.coordinator.init_producer_id(name, TIMEOUT_MS, expected, producer_id, self.expect(initiated))

    @rule(name=ids, items=st.sets(partitions, min_size=1))
    def add_partitions(self, name: str, items: set[TopicPartition]) -> None:
        if name in self.identities:
            self.coordinator.add_partitions(name, self.identities[name], items, self.expect(), self.version)

    @rule(name=ids, committed=st.booleans())
    def end(self, name: str, committed: bool) -> None:
        identity = self.identities.get(name)
        if identity is None:
            return
        if self.version < 2:
            self.coordinator.end(name, identity, committed, self.expect())
            return

        def ended(result: IdentityResult) -> None:
            if not result.error:
                self.identities[name] = result.identity

        self.coordinator.end_and_bump(name, identity, committed, -1, self.expect(ended))

    # Time, partitions and the log

    @rule(duration_ms=st.sampled_from((0, 200, TIMEOUT_MS + 1_000, EXPIRATION_MS)))
    def time_passes(self, duration_ms: int) -> None:
        self.scheduler.advance(duration_ms)

    @rule(error=st.sampled_from((ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS)))
    def markers_are_answered(self, error: ErrorCode) -> None:
        self.scheduler.advance(200)
        self.partitions.answer(error)

    @rule(count=st.integers(1, 3))
    def followers_fetch(self, count: int) -> None:
        self.log.replicate(count)

    @rule()
    def followers_fetch_everything(self) -> None:
        self.log.replicate(1_000)

    @rule(refuses=st.sampled_from((None, None, ErrorCode.NOT_ENOUGH_REPLICAS)))
    def appends_are_refused(self, refuses: ErrorCode | None) -> None:
        self.log.refuses = refuses

    @rule(is_under_min_isr=st.booleans())
    def in_sync_replicas_change(self, is_under_min_isr: bool) -> None:
        self.log.is_under_min_isr = is_under_min_isr

    @rule(kept=st.integers(0, 3), has_crashed=st.booleans())
    def another_coordinator_takes_over(self, kept: int, has_crashed: bool) -> None:
        self.log.lose_leadership(kept)
        if has_crashed:
            self.coordinator.close()
        else:
            self.coordinator.unload(0)
        assert self.unanswered == 0
        self.log.refuses, self.log.is_under_min_isr = None, False
        # The responses of the partitions arrive late, after the coordinator was unloaded.
        late, self.partitions.waiting = self.partitions.waiting, []
        if has_crashed:
            self.start()
        else:
            self.load()
        for partition, done in late:
            done(partition, ErrorCode.NONE)

    # Invariants

    @invariant()
    def it_knows_what_a_coordinator_would_load(self) -> None:
        if hasattr(self, "log"):
            committed = self.log.before(max(self.log.high_watermark, self.loaded_end))
            successor = loaded(committed, self.version)
            assert stored(self.coordinator, self.version) == stored(successor, self.version)

    @invariant()
    def what_is_decided_is_completed_so(self) -> None:
        decided: dict[str, TransactionState] = {}
        for batch in self.log.batches if hasattr(self, "log") else ():
            for key, value in batch.records:
                record = decode_record(key, value)
                assert record is not None
                expected = decided.pop(record.transactional_id, None)
                status = record.value
                if expected is not None:
                    assert status is not None and status.state is expected
                if status is not None and status.state in OUTCOMES:
                    decided[record.transactional_id] = OUTCOMES[status.state]

    def teardown(self) -> None:
        if hasattr(self, "coordinator"):
            self.coordinator.close()
            assert self.unanswered == 0


def test_transactions_have_the_same_state_before_and_after_loading() -> None:
    run_state_machine_as_test(
        Transactions,
        settings=settings(
            max_examples=3000 if CAMPAIGN else 120,
            stateful_step_count=80 if CAMPAIGN else 40,
            deadline=None,
            phases=set(Phase) - {Phase.explain} - ({Phase.shrink} if CAMPAIGN else set()),
        ),
    )
