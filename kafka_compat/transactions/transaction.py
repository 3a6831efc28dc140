"""One transactional id as its coordinator sees it (KIP-98, KIP-360, KIP-588). No I/O, no clock.

Rules
1. The status changes when its record is committed to `__transaction_state`, never before: in `replay` alone,
   which keeps it as `stored`. Meanwhile a transition is pending, and other requests for a change get
   CONCURRENT_TRANSACTIONS.
2. A transaction is decided once PrepareCommit or PrepareAbort is committed: the client is answered then, and
   the markers follow until every partition has one, whatever happens to this broker.
3. InitProducerId raises the epoch, so that older producers of the id are fenced. A producer that sends its
   identity gets a new epoch only while nobody came after it (PRODUCER_FENCED otherwise); the same request
   again gets the same answer (KIP-360). Past the last epoch but one the id is given up for a new one.
4. An open transaction in the way of InitProducerId, or past its timeout, is aborted in an epoch of its own
   (PrepareEpochFence), which no client ever gets, and which counts from the moment of the decision: `status`
   has it before `stored`. When that could not be written the epoch is used again.
   With transaction.version 2 the abort counts as one of that version, whoever began the transaction.
5. A producer of transaction.version 2 has an epoch for each transaction (KIP-890 part 2): the markers carry
   the next one, and so does the answer to EndTxn. A late request has an epoch of the past and is refused;
   the same EndTxn again is recognized by its epoch. The producer may abort a transaction that has not begun,
   and past the last epoch but one it continues with a new producer id.

The transitions, each with the states that it may begin in, are `BEFORE` in `transitions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka_compat.coordinator_runtime.machine import Now, Waiter
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.lifecycle import Lifecycle
from kafka_compat.transactions.status import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    VERSION_WITH_EPOCH_BUMP,
    IdentityResult,
    Output,
    ProducerIdentity,
    Result,
    Status,
    StatusRecord,
    TopicPartition,
)
from kafka_compat.transactions.transitions import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    OUTCOMES,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
)


class Transaction:
    """See the rules above. A machine of the coordinator runtime; whoever runs it also calls `markers_written`
    when every partition of `Output.markers` has its marker.
    """

    __slots__ = ("_lifecycle", "transactional_id")

    def __init__(self, transactional_id: str, version: int = 0) -> None:
        """`version` is the coordinator's transaction.version."""
        self.transactional_id = transactional_id
        self._lifecycle = Lifecycle(transactional_id, version)

    @classmethod
    def new(
        cls, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int, version: int = 0
    ) -> Transaction:
        """An id that was never seen; InitProducerId gives it epoch 0."""
        transaction = cls(transactional_id, version)
        transaction._lifecycle.status = Status(
            producer_id, NO_EPOCH, timeout_ms, EMPTY, frozenset(), NO_TIME, now_ms
        )
        return transaction

    @property
    def status(self) -> Status:
        """The status that producers and administrators are shown."""
        return self._lifecycle.status

    @property
    def stored(self) -> Status | None:
        """The status that the log holds."""
        return self._lifecycle.stored

    @property
    def needs_producer_id(self) -> bool:
        """Whether InitProducerId, or an EndTxn of transaction.version 2, will want a new producer id."""
        return self._lifecycle.needs_producer_id

    # Requests of producers

    def init_producer_id(
        self,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: int,
        waiter: Waiter,
        now_ms: int,
    ) -> Output:
        """InitProducerId; `expected` is who the producer believes it is, `new_producer_id` is -1 when
        `needs_producer_id` was False a moment ago.
        """
        out = Output()
        status = self._lifecycle.status
        if self._lifecycle.is_pending:
            return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        if expected is not None and not self._may_continue(expected):
            return _refused(out, waiter, IdentityResult(ErrorCode.PRODUCER_FENCED))
        if self._lifecycle.state in PREPARED:
            return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        if self._lifecycle.state is ONGOING:
            out.notes.append("a producer starts again: its open transaction is aborted")
            answer = IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS)
            return self._lifecycle.fence(out, waiter, answer, now_ms)
        if self._lifecycle.needs_producer_id and (
            expected is None or expected.producer_epoch == status.producer_epoch
        ):
            if new_producer_id == NO_PRODUCER_ID:
                return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
            identity = ProducerIdentity(new_producer_id, 0)
            last_epoch = NO_EPOCH if expected is None else status.producer_epoch
        elif expected is None:
            identity, last_epoch = self._lifecycle.next_identity, NO_EPOCH
        elif status.producer_epoch in (NO_EPOCH, expected.producer_epoch):
            identity, last_epoch = self._lifecycle.next_identity, status.producer_epoch
        elif expected.producer_epoch == self._lifecycle.last_epoch:
            # The answer to the same request was lost.
            identity, last_epoch = status.identity, self._lifecycle.last_epoch
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
        return self._lifecycle.prepare(
            out, begun, waiter, IdentityResult(ErrorCode.NONE, identity), last_epoch=last_epoch
        )

    def _may_continue(self, expected: ProducerIdentity) -> bool:
        """Whether the producer is the one that holds the id, or held it until its epochs were used up."""
        return (
            self._lifecycle.status.producer_epoch == NO_EPOCH
            or expected.producer_id == self._lifecycle.status.producer_id
            or (
                expected.producer_id == self._lifecycle.status.previous_producer_id
                and expected.producer_epoch >= EPOCH_MAX - 1
            )
        )

    def verify(self, identity: ProducerIdentity, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Whether all of these partitions are in the open transaction (KIP-890 part 1); if not
        TRANSACTION_ABORTABLE.
        """
        error = self._check_identity(identity)
        if error:
            return error
        if self._lifecycle.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if all(partition in self._lifecycle.status.partitions for partition in partitions):
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
        """AddPartitionsToTxn; the first of a transaction opens it."""
        out = Output()
        bumps = client_version >= VERSION_WITH_EPOCH_BUMP
        if bumps and self._lifecycle.is_pending:
            # It may be about to get the producer id that the request has already.
            return _refused(out, waiter, ErrorCode.CONCURRENT_TRANSACTIONS)
        error = self._check_identity(identity)
        if not error and (self._lifecycle.is_pending or self._lifecycle.state in PREPARED):
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error or (self._lifecycle.state is ONGOING and partitions <= self._lifecycle.status.partitions):
            return _refused(out, waiter, error)
        status = self._lifecycle.status
        extended = status._replace(
            state=ONGOING,
            partitions=status.partitions | partitions,
            start_ms=status.start_ms if self._lifecycle.state is ONGOING else now_ms,
            last_update_ms=now_ms,
            previous_producer_id=status.producer_id,
            client_version=client_version,
        )
        return self._lifecycle.prepare(out, extended, waiter, ErrorCode.NONE)

    def end(self, identity: ProducerIdentity, committed: bool, waiter: Waiter, now_ms: int) -> Output:
        """EndTxn; the same again is answered as before."""
        out = Output()
        error = self._check_identity(identity)
        if not error and self._lifecycle.is_pending:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if not error and self._lifecycle.state is ONGOING:
            prepared = self._lifecycle.status._replace(
                state=PREPARE_COMMIT if committed else PREPARE_ABORT, last_update_ms=now_ms, client_version=0
            )
            return self._lifecycle.prepare(out, prepared, waiter, IdentityResult(ErrorCode.NONE))
        if not error and self._lifecycle.state is not (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
            error = ErrorCode.INVALID_TXN_STATE
        return _refused(out, waiter, IdentityResult(error))

    def end_and_bump(
        self,
        identity: ProducerIdentity,
        committed: bool,
        new_producer_id: int,
        waiter: Waiter,
        now_ms: int,
    ) -> Output:
        """EndTxn of transaction.version 2: the answer has the identity for the next transaction.
        `new_producer_id` is -1 when `needs_producer_id` was False a moment ago.
        """
        out = Output()
        status = self._lifecycle.status
        epoch = identity.producer_epoch
        if self._lifecycle.is_pending:
            return _refused(out, waiter, IdentityResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        is_bumped = identity.producer_id == status.producer_id and epoch + 1 == status.producer_epoch
        is_new_id = (
            identity.producer_id == status.previous_producer_id
            and epoch == EPOCH_MAX - 1
            and status.producer_epoch == 0
        )
        if self._lifecycle.state in OUTCOMES and (is_bumped or is_new_id):
            # The answer to the same request was lost, or the transaction was aborted in its way.
            if self._lifecycle.state is not (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
                return _refused(out, waiter, IdentityResult(ErrorCode.INVALID_TXN_STATE))
            if status.producer_epoch < EPOCH_MAX:
                return _refused(out, waiter, IdentityResult(ErrorCode.NONE, status.identity))
            # That abort took the last epoch, which no client gets: it goes on with a new id (KAFKA-20090).
            error = ErrorCode.NONE
        else:
            error = self._check_identity(identity)
        if not error and committed and self._lifecycle.state is not ONGOING:
            error = ErrorCode.INVALID_TXN_STATE
        if not error and self._lifecycle.needs_producer_id and new_producer_id == NO_PRODUCER_ID:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error:
            return _refused(out, waiter, IdentityResult(error))
        next_identity = self._lifecycle.next_identity
        if self._lifecycle.needs_producer_id:
            next_identity = ProducerIdentity(new_producer_id, 0)
        prepared = status._replace(
            producer_epoch=epoch + 1,
            state=PREPARE_COMMIT if committed else PREPARE_ABORT,
            start_ms=status.start_ms if self._lifecycle.state is ONGOING else now_ms,
            last_update_ms=now_ms,
            next_producer_id=new_producer_id if self._lifecycle.needs_producer_id else NO_PRODUCER_ID,
            client_version=VERSION_WITH_EPOCH_BUMP,
        )
        answer = IdentityResult(ErrorCode.NONE, next_identity)
        return self._lifecycle.prepare(out, prepared, waiter, answer, last_epoch=epoch)

    # The clock

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the open transaction is past the timeout that its producer chose."""
        return (
            self._lifecycle.state is ONGOING
            and not self._lifecycle.is_pending
            and self._lifecycle.status.start_ms + self._lifecycle.status.timeout_ms < now_ms
        )

    def abort_timed_out(self, now_ms: int) -> Output:
        """transaction.timeout.ms is over: its producer is fenced."""
        out = Output()
        if self.is_timed_out(now_ms):
            out.notes.append(f"aborted: it is past its timeout of {self._lifecycle.status.timeout_ms} ms")
            return self._lifecycle.fence(out, None, ErrorCode.NONE, now_ms)
        return out

    def expire(self, now_ms: int, expiration_ms: int) -> Output:
        """transactional.id.expiration.ms: an id at rest for that long is forgotten."""
        out = Output()
        status = self._lifecycle.status
        if (
            not self._lifecycle.is_pending
            and self._lifecycle.state in AT_REST
            and status.last_update_ms + expiration_ms <= now_ms
        ):
            self._lifecycle.prepare(out, status._replace(state=DEAD), None, ErrorCode.NONE)
        return out

    # The runtime's events

    wake_at_ms: Final = None
    """The coordinator calls `abort_timed_out` and `expire` at intervals."""

    @property
    def is_dead(self) -> bool:
        return self._lifecycle.is_dead

    def replay(self, record: StatusRecord, log_offset: int, producer_id: int) -> None:
        self._lifecycle.replay(record)

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Nobody writes to `__transaction_state` in transactions."""

    def loaded(self, now: Now) -> Output:
        return self._lifecycle.loaded(now.wall_ms)

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        return self._lifecycle.written(error, now.wall_ms)

    def markers_written(self) -> Output:
        return self._lifecycle.markers_written()

    def tick(self, now: Now) -> Output:
        return Output()

    def unload(self) -> Output:
        """This broker is no longer the coordinator; `written` has answered the clients that waited."""
        return Output()

    # Small parts

    def _check_identity(self, identity: ProducerIdentity) -> ErrorCode:
        if identity.producer_id != self._lifecycle.status.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if identity.producer_epoch != self._lifecycle.status.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE


def _refused(out: Output, waiter: Waiter, error: Result) -> Output:
    """Answer without a change; NONE where nothing was left to do."""
    out.responses.append((waiter, error))
    return out
