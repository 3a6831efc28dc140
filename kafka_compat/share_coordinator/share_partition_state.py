"""The state of one share-partition, as a state machine of the coordinator runtime.

Rules
1. A snapshot contains the whole state, and an update contains changes, which are merged into the state: the
   start offset only rises, and batches are combined as in `state_batches`. Initialization writes a snapshot.
   A write is an update, but the first one after `updates_per_snapshot` updates is a snapshot.
2. The state epoch fences writes from before the last initialization. Any epoch that is at least as high is
   accepted.
3. The leader epoch fences former leaders. A read raises it, and is stored as an update if it does. A write
   does not raise it.
4. The highest leader epoch of any record fences reads and writes. The stored leader epoch may be lower,
   because initialization resets it to 0. A coordinator that loads the log knows only the records since the
   last snapshot; the state epoch then fences a former leader.
5. Only the reading and writing of a state require it. Deletion of a missing state succeeds, and its summary
   is empty.
6. All results wait until the state on which they are based is committed.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime import coordinator_log, machine
from kafka_compat.coordinator_runtime.machine import Now, Output, ResponseWhenCommitted
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineValue
from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.operations import (
    Delete,
    Initialize,
    Operation,
    Read,
    ReadSummary,
    Result,
    Write,
    not_done,
    rejected,
)
from kafka_compat.share_coordinator.persister import (
    UNKNOWN_COUNT,
    UNKNOWN_OFFSET,
    SharePartitionKey,
    StateSummary,
    StoredState,
)
from kafka_compat.share_coordinator.records import ShareRecord, Snapshot, Update
from kafka_compat.share_coordinator.state_batches import combine, is_valid

_STORE_ERRORS: Final = coordinator_log.STORE_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_NO_SUMMARY: Final = StateSummary(0, 0, UNKNOWN_OFFSET, UNKNOWN_COUNT)

_NEGATIVE_PARTITION: Final = "The partition must not be negative."
_NEGATIVE_LEADER_EPOCH: Final = "The leader epoch must not be negative."
_NEGATIVE_STATE_EPOCH: Final = "The state epoch must not be negative."
_READ_UNINITIALIZED: Final = "The share-partition cannot be read: it is not initialized."
_WRITE_UNINITIALIZED: Final = "The share-partition cannot be written: it is not initialized."


class State(NamedTuple):
    """The stored state. `whole` is the state as a snapshot: its times and epoch are those of the last
    snapshot.
    """

    whole: Snapshot
    update_count: int
    """Number of updates since the last snapshot that was due to their number."""
    leader_epoch: int
    """The highest leader epoch of any record."""
    snapshot_offset: int
    """The offset of the last snapshot in the log, or a lower offset with no records of this share-partition
    in between.
    """


class _Deletion(NamedTuple):
    """A record that deletes the state."""


_Change = Snapshot | Update | _Deletion | None


class SharePartitionState:
    """The state machine of one share-partition. `key` is known once a record has been replayed."""

    __slots__ = ("_pending_writes", "_updates_per_snapshot", "key", "state")

    def __init__(self, snapshots: SnapshotRegistry, updates_per_snapshot: int) -> None:
        self._updates_per_snapshot = updates_per_snapshot
        self._pending_writes = 0
        self.key: SharePartitionKey | None = None
        self.state: TimelineValue[State | None] = TimelineValue(snapshots, None)

    @property
    def wake_at_ms(self) -> int | None:
        return None

    @property
    def is_dead(self) -> bool:
        return not self._pending_writes and self.state.current is None and self.state.committed is None

    # --- events

    def process(
        self,
        key: SharePartitionKey,
        operation: Operation,
        respond: Callable[[Result], None],
        now: Now,
        *,
        exists: bool,
    ) -> Output:
        """Process an operation. `exists` is true if the partition is in the metadata."""
        result, change = decide(
            key, operation, self.state.current, now.wall_ms, self._updates_per_snapshot, exists=exists
        )
        out = Output() if change is None else self._write(key, change)
        out.responses_when_committed.append(
            ResponseWhenCommitted(respond, result, partial(_failed, operation))
        )
        return out

    def snapshot_if_cold(self, interval_ms: int, now: Now) -> Output:
        """Write a snapshot if the last one is at least `interval_ms` old, so that older records of the log
        can be deleted.
        """
        state = self.state.current
        if state is None or self.key is None or now.wall_ms - state.whole.written_ms < interval_ms:
            return Output()
        snapshot = state.whole._replace(snapshot_epoch=state.whole.snapshot_epoch + 1, written_ms=now.wall_ms)
        return self._write(self.key, snapshot)

    def delete(self) -> Output:
        """Delete the state, because the topic was deleted."""
        if self.state.current is None or self.key is None:
            return Output()
        return self._write(self.key, _Deletion())

    def _write(self, key: SharePartitionKey, change: Snapshot | Update | _Deletion) -> Output:
        self._pending_writes += 1
        value = None if isinstance(change, _Deletion) else change
        return Output(write=machine.Write([ShareRecord(key, value)], None))

    # --- interface of the runtime

    def replay(self, record: ShareRecord, log_offset: int, producer_id: int) -> None:
        """Apply a record. `log_offset` is the offset after it."""
        self.key = record.key
        value = record.value
        if value is None:
            self.state.set(None)
        elif isinstance(value, Update):
            self.state.set(_updated(self.state.current, value, log_offset - 1))
        else:
            old = self.state.current
            update_count = 0 if old is None else old.update_count
            self.state.set(
                State(
                    value,
                    0 if update_count >= self._updates_per_snapshot else update_count,
                    value.leader_epoch if old is None else max(old.leader_epoch, value.leader_epoch),
                    log_offset - 1,
                )
            )

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Do nothing, because no record is part of a transaction."""

    def loaded(self, now: Now) -> Output:
        return Output()

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        self._pending_writes -= 1
        return Output()

    def tick(self, now: Now) -> Output:
        return Output()

    def unload(self) -> Output:
        return Output()


def _failed(operation: Operation, error: ErrorCode) -> Result:
    return not_done(operation, _STORE_ERRORS.get(error, error))


def _updated(state: State | None, update: Update, offset: int) -> State:
    if state is None:
        # The snapshot was deleted with the beginning of the log; Kafka also accepts this.
        first = Snapshot(
            update.snapshot_epoch,
            0,
            update.leader_epoch,
            update.start_offset,
            update.delivery_complete_count,
            0,
            0,
            combine((), update.batches, UNKNOWN_OFFSET),
        )
        return State(first, 1, update.leader_epoch, offset)
    old = state.whole
    start_offset = old.start_offset if update.start_offset == UNKNOWN_OFFSET else update.start_offset
    whole = old._replace(
        leader_epoch=old.leader_epoch if update.leader_epoch == -1 else update.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=combine(old.batches, update.batches, start_offset),
    )
    return State(
        whole,
        state.update_count + 1,
        max(state.leader_epoch, update.leader_epoch),
        state.snapshot_offset,
    )


def decide(
    key: SharePartitionKey,
    operation: Operation,
    state: State | None,
    now_ms: int,
    updates_per_snapshot: int,
    *,
    exists: bool,
) -> tuple[Result, _Change]:
    """Return the result of an operation on a state, None if there is none, and the record to write."""
    if key.partition < 0:
        return _invalid(_NEGATIVE_PARTITION)
    match operation:
        case Initialize():
            return _initialize(operation, state, now_ms, exists)
        case Read():
            return _read(operation, state, now_ms, updates_per_snapshot, exists)
        case Write():
            return _write(operation, state, now_ms, updates_per_snapshot, exists)
        case Delete():
            if not exists:
                return rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
            return Result(), None if state is None else _Deletion()
        case ReadSummary():
            if not exists:
                return rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
            return Result(value=_NO_SUMMARY if state is None else _summary(state.whole)), None


def _invalid(message: str) -> tuple[Result, None]:
    return Result(ErrorCode.INVALID_REQUEST, message), None


def _summary(whole: Snapshot) -> StateSummary:
    return StateSummary(
        whole.state_epoch, whole.leader_epoch, whole.start_offset, whole.delivery_complete_count
    )


def _initialize(
    operation: Initialize, state: State | None, now_ms: int, exists: bool
) -> tuple[Result, _Change]:
    if operation.state_epoch < 0:
        return _invalid(_NEGATIVE_STATE_EPOCH)
    if state is not None and operation.state_epoch < state.whole.state_epoch:
        return rejected(ErrorCode.FENCED_STATE_EPOCH), None
    if not exists:
        return rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
    is_known = operation.start_offset != UNKNOWN_OFFSET
    return Result(), Snapshot(
        0 if state is None else state.whole.snapshot_epoch + 1,
        operation.state_epoch,
        0,
        operation.start_offset,
        0 if is_known else UNKNOWN_COUNT,
        now_ms,
        now_ms,
        (),
    )


def _read(
    operation: Read, state: State | None, now_ms: int, updates_per_snapshot: int, exists: bool
) -> tuple[Result, _Change]:
    if operation.leader_epoch < 0:
        return _invalid(_NEGATIVE_LEADER_EPOCH)
    if state is None:
        return _invalid(_READ_UNINITIALIZED)
    if operation.leader_epoch < state.leader_epoch:
        return rejected(ErrorCode.FENCED_LEADER_EPOCH), None
    if not exists:
        return rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
    whole = state.whole
    result = Result(value=StoredState(whole.state_epoch, whole.start_offset, whole.batches))
    if operation.leader_epoch == state.leader_epoch:
        return result, None
    raised = Update(
        whole.snapshot_epoch,
        operation.leader_epoch,
        whole.start_offset,
        whole.delivery_complete_count,
        (),
    )
    return result, _change(state, raised, now_ms, updates_per_snapshot)


def _write(
    operation: Write, state: State | None, now_ms: int, updates_per_snapshot: int, exists: bool
) -> tuple[Result, _Change]:
    if operation.leader_epoch < 0:
        return _invalid(_NEGATIVE_LEADER_EPOCH)
    if operation.state_epoch < 0:
        return _invalid(_NEGATIVE_STATE_EPOCH)
    if state is None:
        return _invalid(_WRITE_UNINITIALIZED)
    if operation.leader_epoch < state.leader_epoch:
        return rejected(ErrorCode.FENCED_LEADER_EPOCH), None
    whole = state.whole
    if operation.state_epoch < whole.state_epoch:
        return rejected(ErrorCode.FENCED_STATE_EPOCH), None
    if not exists:
        return rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
    start_offset = max(operation.start_offset, whole.start_offset)
    if not all(is_valid(batch, start_offset) for batch in operation.batches):
        # Kafka fails when it merges such a batch with another one.
        return not_done(operation, ErrorCode.UNKNOWN_SERVER_ERROR), None
    count = operation.delivery_complete_count
    if operation.start_offset == whole.start_offset:
        count = max(count, whole.delivery_complete_count)
    elif operation.start_offset < whole.start_offset:
        count = whole.delivery_complete_count
    update = Update(
        whole.snapshot_epoch,
        whole.leader_epoch,
        start_offset,
        count,
        combine((), operation.batches, start_offset),
    )
    return Result(), _change(state, update, now_ms, updates_per_snapshot)


def _change(state: State, update: Update, now_ms: int, updates_per_snapshot: int) -> Snapshot | Update:
    """Return the update, or a snapshot of the state after the update if one is due."""
    if state.update_count < updates_per_snapshot:
        return update
    whole = state.whole
    return Snapshot(
        whole.snapshot_epoch + 1,
        whole.state_epoch,
        update.leader_epoch,
        update.start_offset,
        update.delivery_complete_count,
        now_ms,
        now_ms,
        combine(whole.batches, update.batches, update.start_offset),
    )
