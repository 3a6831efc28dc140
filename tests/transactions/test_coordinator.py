"""The transaction coordinator with a log in memory: loading, responses, retried markers, and deletions."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.coordinator import TransactionCoordinator, TransactionSettings
from kafka_compat.transactions.marker_writer import Marker, MarkerCallback
from kafka_compat.transactions.status import (
    IdentityResult,
    ProducerIdentity,
    TopicPartition,
    TransactionState,
)
from tests.groups.memory import WALL_MS, ManualScheduler, MemoryLog

PARTITIONS = [("a", 0), ("b", 0)]
SECOND_MS = 1000


class Partitions:
    """A MarkerWriter whose partitions respond immediately, with the error in `answers` or NONE. Partitions in
    `gone` do not exist.
    """

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.answers: dict[TopicPartition, ErrorCode] = {}
        self.gone: set[TopicPartition] = set()

    def exists(self, partition: TopicPartition) -> bool:
        return partition not in self.gone

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], done: MarkerCallback) -> None:
        for partition in partitions:
            error = self.answers.get(partition, ErrorCode.NONE)
            if not error:
                self.written.append((partition, marker))
            done(partition, error)


class Coordinator:
    """The coordinator of all shards of its log, in epoch 3."""

    def __init__(self, log: MemoryLog, partitions: Partitions | None = None, **settings: int) -> None:
        self.log = log
        self.partitions = partitions or Partitions()
        self.scheduler = ManualScheduler()
        self.actual = TransactionCoordinator(
            coordinator_log=log,
            markers=self.partitions,
            scheduler=self.scheduler,
            settings=TransactionSettings(**settings),
            now_ms=lambda: WALL_MS + self.scheduler.now_ms,
        )
        self.actual.start()
        for shard in range(log.shard_count):
            self.actual.load(shard, 3)

    def begin(self) -> ProducerIdentity:
        self.scheduler.advance()
        initiated: list[IdentityResult] = []
        self.actual.init_producer_id("id", 60_000, None, 7, initiated.append)
        assert initiated[0].error is ErrorCode.NONE
        added: list[ErrorCode] = []
        self.actual.add_partitions("id", initiated[0].identity, PARTITIONS, added.append)
        assert added == [ErrorCode.NONE]
        return initiated[0].identity

    def commit(self, identity: ProducerIdentity) -> ErrorCode:
        answers: list[IdentityResult] = []
        self.actual.end("id", identity, True, answers.append)
        (answer,) = answers
        return answer.error

    def state(self) -> TransactionState | ErrorCode:
        error, status = self.actual.describe("id")
        return error if status is None else status.state


def test_every_partition_receives_a_marker_with_the_coordinator_epoch() -> None:
    coordinator = Coordinator(MemoryLog(2))
    identity = coordinator.begin()
    assert coordinator.commit(identity) is ErrorCode.NONE
    assert coordinator.partitions.written == [], "markers are written after the response"
    assert coordinator.state() is TransactionState.PREPARE_COMMIT
    coordinator.scheduler.advance()
    marker = Marker(identity, True, 3)
    assert coordinator.partitions.written == [(partition, marker) for partition in PARTITIONS]
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT


def test_a_marker_rejected_with_a_retriable_error_is_sent_again() -> None:
    coordinator = Coordinator(MemoryLog(2))
    identity = coordinator.begin()
    coordinator.partitions.answers = {("b", 0): ErrorCode.NOT_ENOUGH_REPLICAS}
    assert coordinator.commit(identity) is ErrorCode.NONE
    coordinator.scheduler.advance(SECOND_MS)
    assert coordinator.state() is TransactionState.PREPARE_COMMIT
    coordinator.partitions.answers = {}
    coordinator.scheduler.advance(SECOND_MS)
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT
    assert [partition for partition, _ in coordinator.partitions.written] == PARTITIONS


def test_deleted_topics_do_not_need_a_marker() -> None:
    coordinator = Coordinator(MemoryLog(2))
    identity = coordinator.begin()
    coordinator.partitions.answers = dict.fromkeys(PARTITIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    coordinator.commit(identity)
    coordinator.scheduler.advance()
    assert coordinator.state() is TransactionState.PREPARE_COMMIT
    coordinator.partitions.gone = set(PARTITIONS)
    coordinator.scheduler.advance(SECOND_MS)
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT


def test_a_new_coordinator_completes_its_predecessors_transactions() -> None:
    """The first coordinator's markers are rejected. The next one loads the same log and sends them again."""
    log = MemoryLog(2)
    first = Coordinator(log)
    identity = first.begin()
    first.partitions.answers = dict.fromkeys(PARTITIONS, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    first.commit(identity)
    first.scheduler.advance()
    second = Coordinator(log)
    assert second.state() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    second.scheduler.advance()
    assert [partition for partition, _ in second.partitions.written] == PARTITIONS
    assert second.state() is TransactionState.COMPLETE_COMMIT
    third = Coordinator(log)
    third.scheduler.advance()
    assert third.partitions.written == []
    assert third.state() is TransactionState.COMPLETE_COMMIT


def test_an_open_transaction_survives_loading() -> None:
    log = MemoryLog(2)
    identity = Coordinator(log).begin()
    heir = Coordinator(log)
    heir.scheduler.advance()
    assert heir.actual.verify("id", identity, PARTITIONS) is ErrorCode.NONE
    assert heir.commit(identity) is ErrorCode.NONE
    heir.scheduler.advance()
    assert heir.state() is TransactionState.COMPLETE_COMMIT


def test_waiting_requests_fail_when_leadership_ends() -> None:
    coordinator = Coordinator(MemoryLog(2))
    identity = coordinator.begin()
    coordinator.log.hold = True
    answers: list[IdentityResult] = []
    coordinator.actual.end("id", identity, True, answers.append)
    assert answers == []
    for shard in range(2):
        coordinator.actual.unload(shard)
    coordinator.log.commit(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answers == [IdentityResult(ErrorCode.NOT_COORDINATOR)]
    assert coordinator.state() is ErrorCode.NOT_COORDINATOR
    assert coordinator.partitions.written == []


def test_idle_transactional_ids_expire_permanently() -> None:
    log = MemoryLog(2)
    coordinator = Coordinator(
        log,
        transactional_id_expiration_ms=10 * SECOND_MS,
        transaction_remove_expired_transaction_cleanup_interval_ms=SECOND_MS,
    )
    coordinator.commit(coordinator.begin())
    coordinator.scheduler.advance(9 * SECOND_MS)
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT
    coordinator.scheduler.advance(2 * SECOND_MS)
    assert coordinator.state() is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert coordinator.actual.needs_producer_id("id")
    heir = Coordinator(log)
    heir.scheduler.advance()
    assert heir.state() is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_producer_that_exceeds_its_transaction_timeout_is_fenced() -> None:
    coordinator = Coordinator(MemoryLog(2))
    identity = coordinator.begin()
    coordinator.scheduler.advance(60 * SECOND_MS)
    assert coordinator.state() is TransactionState.ONGOING
    coordinator.scheduler.advance(11 * SECOND_MS)
    assert coordinator.state() is TransactionState.COMPLETE_ABORT
    assert coordinator.commit(identity) is ErrorCode.PRODUCER_FENCED
    assert not any(marker.committed for _, marker in coordinator.partitions.written)
