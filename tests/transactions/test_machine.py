"""The transaction state machine: responses and records in each state."""

from __future__ import annotations

import pytest

from kafka_compat.coordinator_runtime.machine import Now, Output
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.records import decode_record, encode_record
from kafka_compat.transactions.status import (
    EPOCH_MAX,
    IdentityResult,
    Markers,
    ProducerIdentity,
    RetryCompletion,
    Status,
    StatusRecord,
    TransactionState,
)
from kafka_compat.transactions.transaction import Transaction

P = ProducerIdentity
FIRST = P(7, 0)
PARTITIONS = frozenset({("orders", 0), ("orders", 1)})
TIMEOUT_MS = 60_000


class Run:
    """A machine whose appends are committed immediately, unless specified otherwise. `answers` are its
    responses in order.
    """

    def __init__(self, status: Status | None = None) -> None:
        self.transaction = Transaction("id", SnapshotRegistry())
        self.transaction.create(7, TIMEOUT_MS, 0)
        if status is not None:
            self.transaction.replay(StatusRecord("id", status), 1, -1)
            self.transaction.loaded(Now(0, 0))
        self.now_ms = 0
        self.answers: list[object] = []
        self.states: list[str | None] = []
        self.markers: list[tuple[ProducerIdentity, bool]] = []

    def take(self, out: Output, store_error: ErrorCode = ErrorCode.NONE) -> None:
        self.answers += [result for _, result in out.responses]
        self.markers += [(each.identity, each.committed) for each in out.effects if isinstance(each, Markers)]
        if out.write is not None:
            (record,) = out.write.records
            self.states.append(None if record.value is None else record.value.state.value)
            if not store_error:
                self.transaction.replay(record, 2, -1)
            self.take(self.transaction.written(None, store_error, Now(0, self.now_ms)))

    def init(
        self,
        expected: ProducerIdentity | None = None,
        new_id: int = -1,
        store_error: ErrorCode = ErrorCode.NONE,
        timeout_ms: int = TIMEOUT_MS,
    ) -> object:
        out = self.transaction.init_producer_id(timeout_ms, expected, new_id, "init", self.now_ms)
        self.take(out, store_error)
        answer = self.answers[-1]
        assert isinstance(answer, IdentityResult)
        return answer.error or answer.identity

    def add(self, identity: ProducerIdentity, version: int = 0) -> object:
        self.take(self.transaction.add_partitions(identity, PARTITIONS, "add", self.now_ms, version))
        return self.answers[-1]

    def end(
        self, identity: ProducerIdentity, committed: bool = True, store_error: ErrorCode = ErrorCode.NONE
    ) -> object:
        self.take(self.transaction.end(identity, committed, "end", self.now_ms), store_error)
        answer = self.answers[-1]
        assert isinstance(answer, IdentityResult)
        return answer.error

    def end_and_bump(self, identity: ProducerIdentity, committed: bool = True, new_id: int = -1) -> object:
        """Return the producer's next identity, or the error."""
        self.take(self.transaction.end_and_bump(identity, committed, new_id, "end", self.now_ms))
        answer = self.answers[-1]
        assert isinstance(answer, IdentityResult)
        return answer.error or answer.identity

    def complete(self) -> None:
        self.take(self.transaction.markers_written())


def at(state: TransactionState, epoch: int = 0) -> Run:
    partitions = PARTITIONS if state.value in ("Ongoing", "PrepareCommit", "PrepareAbort") else frozenset()
    run = Run(Status(7, epoch, TIMEOUT_MS, state, partitions, 0, 0))
    run.take(run.transaction.loaded(Now(0, 0)))
    return run


def test_a_restarted_producer_sets_its_new_transaction_timeout() -> None:
    run = Run()
    run.init()
    run.init(timeout_ms=5_000)
    assert run.transaction.status.timeout_ms == 5_000


def test_a_transaction_is_committed_and_followed_by_another() -> None:
    run = Run()
    assert run.init() == FIRST
    assert run.add(FIRST) is ErrorCode.NONE
    assert run.add(FIRST) is ErrorCode.NONE
    assert run.end(FIRST) is ErrorCode.NONE
    assert run.markers == [(FIRST, True)]
    assert run.add(FIRST) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert run.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    run.complete()
    assert run.end(FIRST) is ErrorCode.NONE, "a repeated commit gets the same response"
    assert run.end(FIRST, committed=False) is ErrorCode.INVALID_TXN_STATE
    assert run.add(FIRST) is ErrorCode.NONE
    assert run.states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "Ongoing"]


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        ("Ongoing", ErrorCode.NONE, ErrorCode.NONE),
        ("PrepareCommit", ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        ("PrepareAbort", ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        ("CompleteCommit", ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE),
        ("CompleteAbort", ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE),
    ],
)
def test_end_txn_is_validated_in_each_state(state: str, commit: ErrorCode, abort: ErrorCode) -> None:
    assert at(TransactionState(state)).end(FIRST) is commit
    assert at(TransactionState(state)).end(FIRST, committed=False) is abort
    assert at(TransactionState(state)).end(P(8, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert at(TransactionState(state)).end(P(7, 1)) is ErrorCode.PRODUCER_FENCED


def test_a_second_producer_aborts_the_open_transaction_and_fences_the_first() -> None:
    run = at(TransactionState.ONGOING)
    assert run.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert run.markers == [(P(7, 1), False)], "the abort uses a new epoch"
    assert run.end(FIRST) is ErrorCode.PRODUCER_FENCED
    run.complete()
    assert run.init() == P(7, 2)
    assert run.add(FIRST) is ErrorCode.PRODUCER_FENCED


def test_init_producer_id_validates_the_given_identity() -> None:
    """A client's given identity gets the next epoch unless a newer producer exists, and a repeated request
    gets the same response (KIP-360).
    """
    run = at(TransactionState.COMPLETE_ABORT, epoch=4)
    assert run.init(P(7, 4)) == P(7, 5)
    assert run.init(P(7, 4)) == P(7, 5), "the response was lost"
    assert run.init(P(7, 3)) is ErrorCode.PRODUCER_FENCED
    assert run.init(P(6, 5)) is ErrorCode.PRODUCER_FENCED
    assert run.init() == P(7, 6), "a different producer"
    assert run.init(P(7, 5)) is ErrorCode.PRODUCER_FENCED
    assert run.init(P(7, 4)) is ErrorCode.PRODUCER_FENCED


def test_exhausting_the_epochs_assigns_a_new_producer_id() -> None:
    last = P(7, EPOCH_MAX - 1)
    run = at(TransactionState.COMPLETE_COMMIT, epoch=last.producer_epoch)
    assert run.transaction.needs_producer_id
    assert run.init(last, new_id=20) == P(20, 0)
    assert run.init(last) == P(20, 0), "the response was lost"
    run = at(TransactionState.EMPTY, epoch=last.producer_epoch)
    assert run.init(new_id=21) == P(21, 0)
    assert run.init(last) is ErrorCode.PRODUCER_FENCED


def test_a_producer_at_the_last_epoch_is_fenced() -> None:
    run = at(TransactionState.ONGOING, epoch=EPOCH_MAX - 1)
    assert run.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert run.markers == [(P(7, EPOCH_MAX), False)]
    run.complete()
    assert run.init(new_id=30) == P(30, 0)


def test_partitions_are_verified_without_being_added() -> None:
    for state, expected in (
        ("Ongoing", ErrorCode.NONE),
        ("PrepareCommit", ErrorCode.CONCURRENT_TRANSACTIONS),
        ("CompleteCommit", ErrorCode.TRANSACTION_ABORTABLE),
        ("Empty", ErrorCode.TRANSACTION_ABORTABLE),
    ):
        assert at(TransactionState(state)).transaction.verify(FIRST, PARTITIONS) is expected
    transaction = at(TransactionState.ONGOING).transaction
    assert transaction.verify(FIRST, [("other", 0)]) is ErrorCode.TRANSACTION_ABORTABLE
    assert transaction.verify(P(7, 1), PARTITIONS) is ErrorCode.PRODUCER_FENCED
    assert transaction.verify(P(8, 0), PARTITIONS) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_transaction_past_its_timeout_is_aborted() -> None:
    run = at(TransactionState.ONGOING)
    run.take(run.transaction.abort_timed_out(TIMEOUT_MS))
    assert run.states == []
    run.take(run.transaction.abort_timed_out(TIMEOUT_MS + 1))
    run.complete()
    assert run.states == ["PrepareAbort", "CompleteAbort"]
    assert run.end(FIRST) is ErrorCode.PRODUCER_FENCED


def test_a_transactional_id_expires_only_without_a_transaction() -> None:
    for state in ("Empty", "CompleteCommit", "CompleteAbort"):
        run = at(TransactionState(state))
        run.take(run.transaction.expire(999, 1000))
        assert run.states == []
        run.take(run.transaction.expire(1000, 1000))
        assert run.states == [None]
        assert run.transaction.status.state is TransactionState.DEAD
    for state in ("Ongoing", "PrepareCommit", "PrepareAbort"):
        run = at(TransactionState(state))
        run.take(run.transaction.expire(10**9, 1000))
        assert run.states == []


def test_a_failed_append_does_not_change_the_state() -> None:
    run = at(TransactionState.ONGOING)
    refused = ErrorCode.NOT_ENOUGH_REPLICAS
    assert run.end(FIRST, store_error=refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert run.transaction.status.state is TransactionState.ONGOING
    assert run.init(store_error=refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert run.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert run.markers == [(P(7, 1), False)], "the epoch of the failed attempt is reused"


def test_completion_is_retried_after_a_failed_append() -> None:
    run = at(TransactionState.PREPARE_COMMIT)
    out = run.transaction.markers_written()
    assert out.write is not None
    out = run.transaction.written(None, ErrorCode.NOT_ENOUGH_REPLICAS, Now(0, 0))
    assert out.effects == [RetryCompletion()]
    run.complete()
    assert run.transaction.status.state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize(
    ("state", "committed"), [(TransactionState.PREPARE_COMMIT, True), (TransactionState.PREPARE_ABORT, False)]
)
def test_a_prepared_transaction_is_completed_after_loading(state: TransactionState, committed: bool) -> None:
    run = at(state, epoch=3)
    assert run.markers == [(P(7, 3), committed)]
    run.complete()
    assert run.states == [state.value.replace("Prepare", "Complete")]


def test_requests_during_an_append_get_a_concurrent_transactions_error() -> None:
    transaction = at(TransactionState.COMPLETE_COMMIT).transaction
    assert transaction.add_partitions(FIRST, PARTITIONS, "first", 0).write is not None
    for out in (
        transaction.add_partitions(FIRST, PARTITIONS, "second", 0),
        transaction.add_partitions(FIRST, PARTITIONS, "second", 0, 2),
    ):
        assert out.responses == [("second", ErrorCode.CONCURRENT_TRANSACTIONS)]
    for out in (
        transaction.end(FIRST, True, "second", 0),
        transaction.end_and_bump(FIRST, True, -1, "second", 0),
    ):
        assert out.responses == [("second", IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))]
    init = transaction.init_producer_id(TIMEOUT_MS, None, -1, "third", 0)
    assert init.responses == [("third", IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))]
    assert transaction.written(None, ErrorCode.NONE, Now(0, 0)).responses == [("first", ErrorCode.NONE)]


# Tests of transaction.version 2


def test_every_transaction_of_version_2_has_its_own_epoch() -> None:
    run = Run()
    assert run.init() == FIRST
    assert run.add(FIRST, 2) is ErrorCode.NONE
    assert run.end_and_bump(FIRST) == P(7, 1)
    assert run.markers == [(P(7, 1), True)], "the epoch is newer than that of the records"
    run.complete()
    assert run.end_and_bump(FIRST) == P(7, 1), "the response was lost"
    assert run.end_and_bump(FIRST, committed=False) is ErrorCode.INVALID_TXN_STATE
    assert run.add(FIRST, 2) is ErrorCode.PRODUCER_FENCED, "a late record does not begin a transaction"
    assert run.add(P(7, 1), 2) is ErrorCode.NONE
    assert run.end_and_bump(FIRST) is ErrorCode.PRODUCER_FENCED, "a late EndTxn does not end a transaction"
    assert run.end_and_bump(P(7, 1), committed=False) == P(7, 2)
    run.complete()
    assert run.init(P(7, 2)) == P(7, 3)


def test_an_empty_transaction_can_be_aborted_but_not_committed() -> None:
    for state in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        run = at(state, epoch=5)
        assert run.end_and_bump(P(7, 5)) is ErrorCode.INVALID_TXN_STATE
        assert run.end_and_bump(P(7, 5), committed=False) == P(7, 6)
        run.complete()
        assert run.states == ["PrepareAbort", "CompleteAbort"]


def test_a_transaction_that_exhausts_the_epochs_gets_a_new_producer_id() -> None:
    last = P(7, EPOCH_MAX - 1)
    run = at(TransactionState.ONGOING, epoch=last.producer_epoch)
    assert run.end_and_bump(last, new_id=-1) is ErrorCode.CONCURRENT_TRANSACTIONS, (
        "no new producer id was given"
    )
    assert run.end_and_bump(last, new_id=30) == P(30, 0)
    assert run.markers == [(P(7, EPOCH_MAX), True)]
    assert run.add(P(30, 0), 2) is ErrorCode.CONCURRENT_TRANSACTIONS, "markers are missing"
    run.complete()
    assert run.end_and_bump(last) == P(30, 0), "the response was lost"
    assert run.add(P(30, 0), 2) is ErrorCode.NONE
    assert run.end_and_bump(last) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert run.end_and_bump(P(30, 0)) == P(30, 1)


def test_a_prepared_transaction_with_a_new_producer_id_is_completed_after_loading() -> None:
    run = at(TransactionState.ONGOING, epoch=EPOCH_MAX - 1)
    run.end_and_bump(P(7, EPOCH_MAX - 1), new_id=30)
    _, value = encode_record(StatusRecord("id", run.transaction.status))
    assert value is not None
    record = decode_record(encode_record(StatusRecord("id", None))[0], value)
    assert record is not None and record[1] == run.transaction.status
    loaded = Run(record[1])
    loaded.take(loaded.transaction.loaded(Now(0, 0)))
    loaded.complete()
    assert loaded.transaction.status.identity == P(30, 0)
    assert loaded.end_and_bump(P(7, EPOCH_MAX - 1)) == P(30, 0)


def test_fencing_a_transaction_of_version_2_bumps_the_epoch_of_its_marker() -> None:
    run = Run()
    run.init()
    run.add(FIRST, 2)
    assert run.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert run.markers == [(P(7, 1), False)]
    run.complete()
    assert run.end_and_bump(FIRST) is not ErrorCode.NONE
    assert run.init() == P(7, 2)


def test_an_abort_that_exhausts_the_epochs_assigns_a_new_producer_id() -> None:
    last = P(7, EPOCH_MAX - 1)
    run = at(TransactionState.ONGOING, epoch=last.producer_epoch)
    run.now_ms = TIMEOUT_MS + 1
    run.take(run.transaction.abort_timed_out(run.now_ms))
    run.complete()
    assert run.transaction.status.producer_epoch == EPOCH_MAX
    assert run.end_and_bump(last, committed=True) is ErrorCode.INVALID_TXN_STATE
    assert run.end_and_bump(last, committed=False, new_id=30) == P(30, 0)
    run.complete()
    assert run.end_and_bump(last, committed=False) == P(30, 0), "the response was lost"
    assert run.add(P(30, 0), 2) is ErrorCode.NONE


def test_an_abort_of_an_older_clients_transaction_uses_the_coordinators_transaction_version() -> None:
    """Older clients use the same epoch for several transactions, but the marker of an abort by the
    coordinator has a new epoch.
    """
    transaction = Transaction("id", SnapshotRegistry(), version=2)
    transaction.create(7, TIMEOUT_MS, 0)
    run = Run(transaction.status)
    run.transaction = transaction
    run.init()
    run.add(FIRST)
    assert run.transaction.status.client_version == 0
    assert run.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert run.transaction.status.client_version == 2


@pytest.mark.parametrize(("version", "written"), [(0, 0), (1, 1), (2, 1)])
def test_the_transaction_version_determines_the_record_version(version: int, written: int) -> None:
    """Kafka 3.9 writes only version 0."""
    run = Run()
    run.init()
    _, value = encode_record(StatusRecord("id", run.transaction.status), version)
    assert value is not None and int.from_bytes(value[:2], "big") == written
