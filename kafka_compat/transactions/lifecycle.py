"""The transitions of one transactional id, from the decision over its record to the markers. No I/O, no
clock. What producers may ask for when, and the rules of it all, stand in `machine.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import is_committed
from kafka_compat.coordinator_runtime.machine import Now, Waiter, Write
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.transaction_states import (
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
    AT_REST,
    BEFORE,
    COMPLETED,
    DEAD,
    EMPTY,
    ONGOING,
    OUTCOMES,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    STORE_ERRORS,
)

_UNBORN: Final = Status(NO_PRODUCER_ID, NO_EPOCH, 0, EMPTY, frozenset(), NO_TIME, NO_TIME)


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


class TransactionLifecycle:
    """A Machine of the coordinators' runtime. Whoever runs it also reports to `markers_written` when every
    partition of `markers` has its own.

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
        self.status = _UNBORN
        self._version = version
        self.last_epoch = NO_EPOCH
        self._pending: _Pending | None = None
        self._epoch_fence_failed = False

    @property
    def state(self) -> TransactionState:
        return self.status.state

    @property
    def needs_producer_id(self) -> bool:
        """Whether InitProducerId, or an EndTxn of transaction.version 2, will want a new producer id: all
        epochs of this one are used up.
        """
        return self.status.producer_epoch >= EPOCH_MAX - 1

    # The clock

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the open transaction is past the timeout that its producer chose."""
        return (
            self.state is ONGOING
            and self._pending is None
            and self.status.start_ms + self.status.timeout_ms < now_ms
        )

    def abort_timed_out(self, now_ms: int) -> Output:
        """transaction.timeout.ms is over: its producer is fenced."""
        out = Output()
        if self.is_timed_out(now_ms):
            out.notes.append(f"aborted: it is past its timeout of {self.status.timeout_ms} ms")
            return self._fence(out, None, ErrorCode.NONE, now_ms)
        return out

    def expire(self, now_ms: int, expiration_ms: int) -> Output:
        """transactional.id.expiration.ms: an id at rest for that long is forgotten."""
        out = Output()
        status = self.status
        if (
            self._pending is None
            and self.state in AT_REST
            and status.last_update_ms + expiration_ms <= now_ms
        ):
            self._prepare(out, status._replace(state=DEAD), None, ErrorCode.NONE)
        return out

    # Transitions

    @property
    def _next_identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.status.producer_id, self.status.producer_epoch + 1)

    def _fence(self, out: Output, waiter: Waiter | None, answer: Result, now_ms: int) -> Output:
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

    wake_at_ms: Final = None
    """Timeouts are looked for now and then, by `abort_timed_out` and `expire`."""

    def replay(self, record: StatusRecord, log_offset: int, producer_id: int) -> None:
        """The log holds this status of the id: the only place where `stored` changes."""
        self.stored = status = record.value
        if status is None:
            status = self.status._replace(state=DEAD)
            self.is_dead = True
        elif status.state is EMPTY and status.client_version < VERSION_WITH_EPOCH_BUMP:
            # The record has none, and yet DescribeTransactions shows the last one's, as Kafka 3.9's.
            status = status._replace(start_ms=self.status.start_ms)
        self.status = status

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Nobody writes to `__transaction_state` in transactions."""

    def loaded(self, now: Now) -> Output:
        """Send the markers of a transaction that was decided but not complete."""
        out = Output()
        if self.state in PREPARED:
            out.notes.append(f"found in state {self.state}: it is completed")
            self._await_markers(out, now.wall_ms)
        return out

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        """The record of the pending transition is committed and replayed, or (error) it is not."""
        out = Output()
        pending = self._pending
        if pending is None:
            return out
        self._pending = None
        if error and not is_committed(error):
            return self._write_failed(out, pending, STORE_ERRORS.get(error, error))
        self.last_epoch = pending.last_epoch
        if self.state in PREPARED:
            self._await_markers(out, now.wall_ms)
        elif self.state in OUTCOMES:
            self._epoch_fence_failed = False
        # It has happened, even where the producer is told to ask again.
        _answer(out, pending, STORE_ERRORS.get(error, error) if error else error)
        return out

    def tick(self, now: Now) -> Output:
        return Output()

    def unload(self) -> Output:
        """This broker is no longer the coordinator; who waited has been told by `written`."""
        return Output()

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
