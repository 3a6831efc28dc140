"""The transitions of one transactional id, from the decision to its record and to the markers. No I/O, no
clock. `transaction.py` has the rules, and decides what a producer may do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime import coordinator_log
from kafka_compat.coordinator_runtime.coordinator_log import is_committed
from kafka_compat.coordinator_runtime.machine import Waiter, Write
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.status import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    VERSION_WITH_EPOCH_BUMP,
    IdentityResult,
    Markers,
    Output,
    ProducerIdentity,
    Result,
    Status,
    StatusRecord,
    TransactionState,
)
from kafka_compat.transactions.transitions import (
    BEFORE,
    COMPLETED,
    DEAD,
    EMPTY,
    OUTCOMES,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
)

_STORE_ERRORS: Final = coordinator_log.STORE_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error that a producer gets when the log refuses a status."""

_UNKNOWN: Final = Status(NO_PRODUCER_ID, NO_EPOCH, 0, EMPTY, frozenset(), NO_TIME, NO_TIME)


class _Pending(NamedTuple):
    """A transition whose record is on its way to the log. `is_appended` is False while markers are awaited.

    `answer` goes to `waiter` (None: nobody waits) once the record is committed.
    """

    status: Status
    last_epoch: int
    waiter: Waiter | None
    answer: Result
    is_fence: bool
    is_appended: bool


class Lifecycle:
    """The status of one id, and the transition that is pending.

    `stored` is what the log holds, None for nothing; `status` is what producers and administrators are shown.
    They differ in the epoch of an abort that is not written yet, and in a time that records have no room for.
    """

    __slots__ = (
        "_epoch_fence_failed",
        "_pending",
        "_version",
        "is_dead",
        "last_epoch",
        "status",
        "stored",
        "transactional_id",
    )

    def __init__(self, transactional_id: str, version: int = 0) -> None:
        """`version` is the coordinator's transaction.version."""
        self.transactional_id = transactional_id
        self.stored: Status | None = None
        self.is_dead = False
        self.status = _UNKNOWN
        self._version = version
        self.last_epoch = NO_EPOCH
        self._pending: _Pending | None = None
        self._epoch_fence_failed = False

    @property
    def state(self) -> TransactionState:
        return self.status.state

    @property
    def is_pending(self) -> bool:
        """Whether a transition waits for its record or its markers; no other may begin."""
        return self._pending is not None

    @property
    def needs_producer_id(self) -> bool:
        """Whether InitProducerId, or an EndTxn of transaction.version 2, will want a new producer id: all
        epochs of this one are used up.
        """
        return self.status.producer_epoch >= EPOCH_MAX - 1

    # Transitions

    @property
    def next_identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.status.producer_id, self.status.producer_epoch + 1)

    def fence(self, out: Output, waiter: Waiter | None, answer: Result, now_ms: int) -> Output:
        """Abort the open transaction in an epoch of its own, which fences its producer."""
        epoch = self.status.producer_epoch
        if not self._epoch_fence_failed:
            epoch = min(epoch + 1, EPOCH_MAX)
        self.status = self.status._replace(producer_epoch=epoch)
        self.last_epoch = NO_EPOCH
        prepared = self.status._replace(
            state=PREPARE_ABORT,
            last_update_ms=now_ms,
            client_version=max(self._version, self.status.client_version),
        )
        return self.prepare(out, prepared, waiter, answer, is_fence=True)

    def prepare(
        self,
        out: Output,
        status: Status,
        waiter: Waiter | None,
        answer: Result,
        *,
        last_epoch: int | None = None,
        is_fence: bool = False,
    ) -> Output:
        """Write the record of a transition; `answer` goes to `waiter` once the record is committed."""
        if self.state not in BEFORE[status.state]:
            raise AssertionError(f"{self.transactional_id}: {status.state} cannot follow {self.state}")
        kept = self.last_epoch if last_epoch is None else last_epoch
        self._pending = _Pending(status, kept, waiter, answer, is_fence, True)
        out.write = self._write(status)
        return out

    def _write(self, status: Status) -> Write:
        value = None if status.state is DEAD else status
        return Write((StatusRecord(self.transactional_id, value),), None)

    # The runtime's events

    def replay(self, record: StatusRecord) -> None:
        """The log holds this status of the id: the only place where `stored` changes."""
        self.stored = status = record.value
        if status is None:
            status = self.status._replace(state=DEAD)
            self.is_dead = True
        elif status.state is EMPTY and status.client_version < VERSION_WITH_EPOCH_BUMP:
            # The record has none, and yet DescribeTransactions shows the last one's, as Kafka 3.9's.
            status = status._replace(start_ms=self.status.start_ms)
        self.status = status

    def loaded(self, now_ms: int) -> Output:
        """Send the markers of a transaction that was decided but not complete."""
        out = Output()
        if self.state in PREPARED:
            out.notes.append(f"found in state {self.state}: it is completed")
            self._await_markers(out, now_ms)
        return out

    def written(self, error: ErrorCode, now_ms: int) -> Output:
        """The record of the pending transition is committed and replayed, or (error) it is not."""
        out = Output()
        pending = self._pending
        if pending is None:
            return out
        self._pending = None
        if error and not is_committed(error):
            return self._write_failed(out, pending, _STORE_ERRORS.get(error, error))
        self.last_epoch = pending.last_epoch
        if self.state in PREPARED:
            self._await_markers(out, now_ms)
        elif self.state in OUTCOMES:
            self._epoch_fence_failed = False
        # It has happened, even where the producer gets an error and asks again.
        _answer(out, pending, _STORE_ERRORS.get(error, error) if error else error)
        return out

    def _write_failed(self, out: Output, pending: _Pending, error: ErrorCode) -> Output:
        out.notes.append(f"{pending.status.state} could not be written: {error.name}")
        if pending.status.state in OUTCOMES:
            self._pending = pending._replace(is_appended=False)
            out.has_effects = out.retry_completion = error is not ErrorCode.NOT_COORDINATOR
            return out
        if pending.is_fence:
            self._epoch_fence_failed = True
        _answer(out, pending, error)
        return out

    # Markers

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
        self._pending = _Pending(completed, self.last_epoch, None, ErrorCode.NONE, False, False)
        out.has_effects = True
        out.markers = Markers(
            status.identity,
            status.state is PREPARE_COMMIT,
            status.partitions,
            status.client_version >= VERSION_WITH_EPOCH_BUMP,
        )

    def markers_written(self) -> Output:
        """Every partition has its marker: the transaction is complete."""
        out = Output()
        pending = self._pending
        if pending is not None and not pending.is_appended:
            self._pending = pending._replace(is_appended=True)
            out.write = self._write(pending.status)
        return out


def _answer(out: Output, pending: _Pending, error: ErrorCode) -> None:
    answer: Result = pending.answer
    if error:
        answer = IdentityResult(error) if isinstance(answer, IdentityResult) else error
    if pending.waiter is not None:
        out.responses.append((pending.waiter, answer))
