"""State machine of one transactional ID (KIP-98, KIP-360, KIP-588). No I/O, no clock.

Rules
1. The status changes only when its record is committed to `__transaction_state`. Until then the transition
   is pending, and other requests for a change get CONCURRENT_TRANSACTIONS. `replay` keeps the status in the
   log as `stored`.
2. A transaction is prepared once PrepareCommit or PrepareAbort is committed. The client then gets its
   response, and markers are written until every partition has one, even if this broker fails.
3. InitProducerId increments the epoch, which fences older producers of the ID. A producer that sends its
   identity gets a new epoch only if no other producer has replaced it (PRODUCER_FENCED otherwise); a retry
   gets the same response (KIP-360). After the second-to-last epoch, the producer ID is replaced.
4. An open transaction that conflicts with InitProducerId, or exceeds its timeout, is aborted with a new epoch
   (PrepareEpochFence), which is never returned to a client. Until the decision is committed, only `status`
   contains this epoch. If the record could not be written, the epoch is reused. If transaction.version is 2,
   the abort follows version 2, even if the transaction began with an older version.
5. A producer of transaction.version 2 has an epoch for each transaction (KIP-890 part 2): the markers and the
   response to EndTxn contain the next epoch. A late request has an old epoch and is rejected; a retried
   EndTxn is recognized by its epoch. The producer may abort a transaction that has not begun, and after the
   second-to-last epoch it continues with a new producer ID.

The table `BEFORE` contains the transitions, each with the states in which it may begin.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime import coordinator_log
from kafka_compat.coordinator_runtime.coordinator_log import is_committed
from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter, Write
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineValue
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.status import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    VERSION_WITH_EPOCH_BUMP,
    IdentityResult,
    Markers,
    ProducerIdentity,
    Result,
    RetryCompletion,
    Status,
    StatusRecord,
    TopicPartition,
    TransactionState,
)

EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT
DEAD: Final = TransactionState.DEAD

AT_REST: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
BEFORE: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: AT_REST,
    ONGOING: AT_REST | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: AT_REST | {ONGOING},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: AT_REST,
}
"""Maps each state to the states from which a transition to it may begin."""
COMPLETED: Final = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)
OUTCOMES: Final = (COMPLETE_COMMIT, COMPLETE_ABORT)

_STORE_ERRORS: Final = coordinator_log.STORE_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Maps error codes of a failed append to error codes for a producer."""

_UNKNOWN: Final = Status(NO_PRODUCER_ID, NO_EPOCH, 0, EMPTY, frozenset(), NO_TIME, NO_TIME)


class _Pending(NamedTuple):
    """A transition whose record is being written. `is_appended` is False while it waits for markers.

    `answer` is passed to `waiter` (if it is not None) once the record is committed.
    """

    status: Status
    last_epoch: int
    waiter: Waiter | None
    answer: Result
    is_fence: bool
    is_appended: bool


class Transaction:
    """State machine of one transactional ID in the coordinator runtime.

    The caller must call `markers_written` once every partition in the effect `Markers` has its marker.
    """

    __slots__ = (
        "_epoch_fence_failed",
        "_last_epoch",
        "_pending",
        "is_dead",
        "status",
        "stored",
        "transactional_id",
        "version",
    )

    def __init__(self, transactional_id: str, snapshots: SnapshotRegistry, version: int = 0) -> None:
        """`version` is the coordinator's transaction.version."""
        self.transactional_id = transactional_id
        self.stored: TimelineValue[Status | None] = TimelineValue(snapshots, None)
        """The status in the log, or None if the log does not contain the ID."""
        self.status = _UNKNOWN
        """The status shown to producers and administrators. It differs from `stored` in the epoch of an abort
        that is not written yet, and in the start time, which records with the state Empty lack.
        """
        self.is_dead = False
        self.version = version
        """The level of the feature transaction.version."""
        self._last_epoch = NO_EPOCH
        self._pending: _Pending | None = None
        """The transition that waits for its record or its markers. No other transition may begin."""
        self._epoch_fence_failed = False

    def create(self, producer_id: int, timeout_ms: int, now_ms: int) -> None:
        """Initialize a new ID. InitProducerId then assigns epoch 0."""
        self.status = Status(producer_id, NO_EPOCH, timeout_ms, EMPTY, frozenset(), NO_TIME, now_ms)

    @property
    def needs_producer_id(self) -> bool:
        """Whether InitProducerId, or EndTxn of transaction.version 2, needs a new producer ID because all
        epochs of the current one are used up.
        """
        return self.status.producer_epoch >= EPOCH_MAX - 1

    def init_producer_id(
        self,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: int,
        waiter: Waiter,
        now_ms: int,
    ) -> Output:
        """Process an InitProducerId request. `expected` is the identity that the producer sent.
        `new_producer_id` is -1 if `needs_producer_id` was False immediately before the call.
        """
        out = Output()
        status = self.status
        if self._pending is not None:
            return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        if expected is not None and not self._may_continue(expected):
            return _refused(out, waiter, IdentityResult(ErrorCode.PRODUCER_FENCED))
        if self.status.state in PREPARED:
            return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        if self.status.state is ONGOING:
            out.notes.append("aborted the open transaction because the producer restarted")
            answer = IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS)
            return self._fence(out, waiter, answer, now_ms)
        if self.needs_producer_id and (expected is None or expected.producer_epoch == status.producer_epoch):
            if new_producer_id == NO_PRODUCER_ID:
                return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
            identity = ProducerIdentity(new_producer_id, 0)
            last_epoch = NO_EPOCH if expected is None else status.producer_epoch
        elif expected is None:
            identity, last_epoch = self._next_identity, NO_EPOCH
        elif status.producer_epoch in (NO_EPOCH, expected.producer_epoch):
            identity, last_epoch = self._next_identity, status.producer_epoch
        elif expected.producer_epoch == self._last_epoch:
            # The producer is retrying: it did not receive the response to its previous request.
            identity, last_epoch = status.identity, self._last_epoch
        else:
            return _refused(out, waiter, IdentityResult(ErrorCode.PRODUCER_FENCED))
        begun = Status(
            *identity,
            timeout_ms,
            EMPTY,
            frozenset(),
            NO_TIME,
            now_ms,
            previous_producer_id=status.producer_id,
            client_version=status.client_version,
        )
        return self._prepare(
            out, begun, waiter, IdentityResult(ErrorCode.NONE, identity), last_epoch=last_epoch
        )

    def _may_continue(self, expected: ProducerIdentity) -> bool:
        """Return whether the producer owns the ID, or owned it until its epochs were used up."""
        return (
            self.status.producer_epoch == NO_EPOCH
            or expected.producer_id == self.status.producer_id
            or (
                expected.producer_id == self.status.previous_producer_id
                and expected.producer_epoch >= EPOCH_MAX - 1
            )
        )

    def verify(self, identity: ProducerIdentity, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Return NONE if all of these partitions are in the open transaction (KIP-890 part 1), or an error
        code such as TRANSACTION_ABORTABLE.
        """
        error = self._check_identity(identity)
        if error:
            return error
        if self.status.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if all(partition in self.status.partitions for partition in partitions):
            return ErrorCode.NONE
        return ErrorCode.TRANSACTION_ABORTABLE

    def add_partitions(
        self,
        identity: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        waiter: Waiter,
        now_ms: int,
        client_version: int = 0,
    ) -> Output:
        """Process an AddPartitionsToTxn request. The first request opens a transaction."""
        out = Output()
        bumps = client_version >= VERSION_WITH_EPOCH_BUMP
        if bumps and self._pending is not None:
            # The request may already contain the producer ID that the pending transition assigns.
            return _refused(out, waiter, ErrorCode.CONCURRENT_TRANSACTIONS)
        error = self._check_identity(identity)
        if not error and (self._pending is not None or self.status.state in PREPARED):
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error or (self.status.state is ONGOING and partitions <= self.status.partitions):
            return _refused(out, waiter, error)
        status = self.status
        extended = status._replace(
            state=ONGOING,
            partitions=status.partitions | partitions,
            start_ms=status.start_ms if self.status.state is ONGOING else now_ms,
            last_update_ms=now_ms,
            previous_producer_id=status.producer_id,
            client_version=client_version,
        )
        return self._prepare(out, extended, waiter, ErrorCode.NONE)

    def end(self, identity: ProducerIdentity, committed: bool, waiter: Waiter, now_ms: int) -> Output:
        """Process an EndTxn request. A retry gets the same response."""
        out = Output()
        error = self._check_identity(identity)
        if not error and self._pending is not None:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if not error and self.status.state is ONGOING:
            prepared = self.status._replace(
                state=PREPARE_COMMIT if committed else PREPARE_ABORT, last_update_ms=now_ms, client_version=0
            )
            return self._prepare(out, prepared, waiter, IdentityResult(ErrorCode.NONE))
        if not error and self.status.state is not (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
            error = ErrorCode.INVALID_TXN_STATE
        return _refused(out, waiter, IdentityResult(error))

    def end_and_bump(
        self, identity: ProducerIdentity, committed: bool, new_producer_id: int, waiter: Waiter, now_ms: int
    ) -> Output:
        """Process EndTxn for transaction.version 2. The response contains the identity for the next
        transaction. `new_producer_id` is -1 if `needs_producer_id` was False immediately before the call.
        """
        out = Output()
        status = self.status
        epoch = identity.producer_epoch
        if self._pending is not None:
            return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        is_bumped = identity.producer_id == status.producer_id and epoch + 1 == status.producer_epoch
        is_new_id = (
            identity.producer_id == status.previous_producer_id
            and epoch == EPOCH_MAX - 1
            and status.producer_epoch == 0
        )
        if self.status.state in OUTCOMES and (is_bumped or is_new_id):
            # The producer did not receive the response, or the transaction was aborted before the request.
            if self.status.state is not (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
                return _refused(out, waiter, IdentityResult(ErrorCode.INVALID_TXN_STATE))
            if status.producer_epoch < EPOCH_MAX:
                return _refused(out, waiter, IdentityResult(ErrorCode.NONE, status.identity))
            # The abort used the last epoch, so the producer continues with a new ID (KAFKA-20090).
            error = ErrorCode.NONE
        else:
            error = self._check_identity(identity)
        if not error and committed and self.status.state is not ONGOING:
            error = ErrorCode.INVALID_TXN_STATE
        if not error and self.needs_producer_id and new_producer_id == NO_PRODUCER_ID:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error:
            return _refused(out, waiter, IdentityResult(error))
        next_identity = self._next_identity
        if self.needs_producer_id:
            next_identity = ProducerIdentity(new_producer_id, 0)
        prepared = status._replace(
            producer_epoch=epoch + 1,
            state=PREPARE_COMMIT if committed else PREPARE_ABORT,
            start_ms=status.start_ms if self.status.state is ONGOING else now_ms,
            last_update_ms=now_ms,
            next_producer_id=new_producer_id if self.needs_producer_id else NO_PRODUCER_ID,
            client_version=VERSION_WITH_EPOCH_BUMP,
        )
        answer = IdentityResult(ErrorCode.NONE, next_identity)
        return self._prepare(out, prepared, waiter, answer, last_epoch=epoch)

    @property
    def _next_identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.status.producer_id, self.status.producer_epoch + 1)

    def _fence(self, out: Output, waiter: Waiter | None, answer: Result, now_ms: int) -> Output:
        """Abort the open transaction, and fence its producer by incrementing the epoch."""
        epoch = self.status.producer_epoch
        if not self._epoch_fence_failed:
            epoch = min(epoch + 1, EPOCH_MAX)
        self.status = self.status._replace(producer_epoch=epoch)
        self._last_epoch = NO_EPOCH
        prepared = self.status._replace(
            state=PREPARE_ABORT,
            last_update_ms=now_ms,
            client_version=max(self.version, self.status.client_version),
        )
        return self._prepare(out, prepared, waiter, answer, is_fence=True)

    def _prepare(
        self,
        out: Output,
        status: Status,
        waiter: Waiter | None,
        answer: Result,
        *,
        last_epoch: int | None = None,
        is_fence: bool = False,
    ) -> Output:
        """Write the record of a transition. When the record is committed, `answer` is passed to `waiter`."""
        if self.status.state not in BEFORE[status.state]:
            raise AssertionError(f"{self.transactional_id}: {status.state} cannot follow {self.status.state}")
        kept = self._last_epoch if last_epoch is None else last_epoch
        self._pending = _Pending(status, kept, waiter, answer, is_fence, True)
        out.write = self._write(status)
        return out

    def _write(self, status: Status) -> Write:
        value = None if status.state is DEAD else status
        return Write((StatusRecord(self.transactional_id, value),), None)

    def is_timed_out(self, now_ms: int) -> bool:
        """Return whether the open transaction has exceeded the timeout that its producer set."""
        return (
            self.status.state is ONGOING
            and self._pending is None
            and self.status.start_ms + self.status.timeout_ms < now_ms
        )

    def abort_timed_out(self, now_ms: int) -> Output:
        """Abort a transaction that has exceeded its timeout, and fence its producer."""
        out = Output()
        if self.is_timed_out(now_ms):
            out.notes.append(f"aborted the transaction (timeout: {self.status.timeout_ms} ms)")
            return self._fence(out, None, ErrorCode.NONE, now_ms)
        return out

    def expire(self, now_ms: int, expiration_ms: int) -> Output:
        """Delete the ID if it has been unused for transactional.id.expiration.ms."""
        out = Output()
        status = self.status
        if (
            self._pending is None
            and self.status.state in AT_REST
            and status.last_update_ms + expiration_ms <= now_ms
        ):
            self._prepare(out, status._replace(state=DEAD), None, ErrorCode.NONE)
        return out

    wake_at_ms: Final = None
    """Always None, because the coordinator calls `abort_timed_out` and `expire` periodically."""

    def replay(self, record: StatusRecord, log_offset: int, producer_id: int) -> None:
        """Apply a status record of the ID. Only this method changes `stored`."""
        self.stored.set(record.value)

    def _take_effect(self) -> None:
        """Change the status to the committed one."""
        status = self.stored.committed
        if status is None:
            status = self.status._replace(state=DEAD)
            self.is_dead = True
        elif status.state is EMPTY and status.client_version < VERSION_WITH_EPOCH_BUMP:
            # Keep the last start time: the record lacks it, but Kafka 3.9 returns it in DescribeTransactions.
            status = status._replace(start_ms=self.status.start_ms)
        self.status = status

    def loaded(self, now: Now) -> Output:
        """Return the markers for a transaction that was prepared (rule 2) but not completed."""
        out = Output()
        self._take_effect()
        if self.status.state in PREPARED:
            out.notes.append(f"resumed the completion of its transaction (state: {self.status.state})")
            self._await_markers(out, now.wall_ms)
        return out

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        """Complete the pending transition. If `error` is NONE, its record is committed."""
        out = Output()
        pending = self._pending
        if pending is None:
            return out
        self._pending = None
        if error and not is_committed(error):
            return self._write_failed(out, pending, _STORE_ERRORS.get(error, error))
        self._take_effect()
        self._last_epoch = pending.last_epoch
        if self.status.state in PREPARED:
            self._await_markers(out, now.wall_ms)
        elif self.status.state in OUTCOMES:
            self._epoch_fence_failed = False
        # The transition has taken effect, even if the producer gets an error and retries.
        _answer(out, pending, _STORE_ERRORS.get(error, error) if error else error)
        return out

    def _write_failed(self, out: Output, pending: _Pending, error: ErrorCode) -> Output:
        out.notes.append(f"could not record state {pending.status.state}: {error.name}")
        if pending.status.state in OUTCOMES:
            self._pending = pending._replace(is_appended=False)
            if error is not ErrorCode.NOT_COORDINATOR:
                out.effects.append(RetryCompletion())
            return out
        if pending.is_fence:
            self._epoch_fence_failed = True
        _answer(out, pending, error)
        return out

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Ignore the marker, because records in `__transaction_state` are not part of transactions."""

    def tick(self, now: Now) -> Output:
        return Output()

    def unload(self) -> Output:
        """Stop coordinating. There is no output: `written` has already completed the pending requests."""
        return Output()

    def _await_markers(self, out: Output, now_ms: int) -> None:
        status = self.status
        completed = status._replace(
            state=COMPLETED[status.state], partitions=frozenset(), last_update_ms=now_ms
        )
        if status.client_version >= VERSION_WITH_EPOCH_BUMP:
            completed = completed._replace(
                previous_producer_id=status.producer_id, next_producer_id=NO_PRODUCER_ID
            )
        if status.next_producer_id != NO_PRODUCER_ID:
            completed = completed._replace(producer_id=status.next_producer_id, producer_epoch=0)
        self._pending = _Pending(completed, self._last_epoch, None, ErrorCode.NONE, False, False)
        bumped = status.client_version >= VERSION_WITH_EPOCH_BUMP
        out.effects.append(
            Markers(status.identity, status.state is PREPARE_COMMIT, status.partitions, bumped)
        )

    def markers_written(self) -> Output:
        """Complete the transaction, because every partition has its marker."""
        out = Output()
        pending = self._pending
        if pending is not None and not pending.is_appended:
            self._pending = pending._replace(is_appended=True)
            out.write = self._write(pending.status)
        return out

    def _check_identity(self, identity: ProducerIdentity) -> ErrorCode:
        if identity.producer_id != self.status.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if identity.producer_epoch != self.status.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE


def _refused(out: Output, waiter: Waiter, error: Result) -> Output:
    """Respond without a transition. The error code is NONE if no transition is needed."""
    out.responses.append((waiter, error))
    return out


def _answer(out: Output, pending: _Pending, error: ErrorCode) -> None:
    answer: Result = pending.answer
    if error:
        answer = IdentityResult(error) if isinstance(answer, IdentityResult) else error
    if pending.waiter is not None:
        out.responses.append((pending.waiter, answer))
