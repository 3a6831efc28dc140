"""A share-partition on the leader of its partition: loading, locks, waiting fetches, and storing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.persister import UNKNOWN_OFFSET
from kafka_compat.share_coordinator.samples import Samples
from kafka_compat.share_partitions.changes import Acknowledgement, DeadLetters, Limits, Write
from kafka_compat.share_partitions.in_flight import NO_DEADLINE
from kafka_compat.share_partitions.share_partition import SharePartition

if TYPE_CHECKING:
    from kafka_compat.coordinator_runtime.scheduler import Scheduler, TimerHandle
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.partition import Partition
    from kafka_compat.share_coordinator.persister import Persister, SharePartitionKey, StoredState
    from kafka_compat.share_partitions.counts import ShareCounts

log = logging.getLogger(__name__)

Done = Callable[[ErrorCode], None]

_LOOK_MIN_MS: Final = 10
"""Minimum time between two checks for expired locks. Locks of one consumer expire within a few ms."""
_END_OF_TIME_MS: Final = 2**62
"""A time after all deadlines."""

_CODES_OF_PERSISTER: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The error codes that clients get for errors of the share coordinator. Others are UNKNOWN_SERVER_ERROR."""
_FORGETTING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Errors of a member's change after which the share-partition is forgotten, and loaded again by the next
fetch.
"""


class Waiter(Protocol):
    """A share fetch that waits for records."""

    def wake(self) -> None: ...


class DeadLetterQueue(Protocol):
    """Writes records to the dead letter queue of a group."""

    def write(self, source: LedSharePartition, letters: Sequence[DeadLetters]) -> None:
        """Write the records, and later call `source.dead_letters_written`, also if they cannot be written."""

    def close(self) -> None:
        """Stop, and drop what has not been written."""


class Host(Protocol):
    """What a share-partition needs from its broker."""

    scheduler: Scheduler
    persister: Persister
    dead_letters: DeadLetterQueue | None
    counts: ShareCounts

    def limits(self, group_id: str) -> Limits: ...

    def resolve_start(
        self, group_id: str, replica: Partition, done: Callable[[int | ErrorCode], None]
    ) -> None:
        """Find the offset at which a group begins that has no offset yet (share.auto.offset.reset)."""

    def forget(self, led: LedSharePartition) -> None: ...

    def in_turn(self, job: Callable[[], None]) -> None:
        """Call `job` soon, between other work: many share-partitions may have something to do at once."""


class LedSharePartition:
    """One share-partition. `machine` is None until its state has been read."""

    __slots__ = (
        "_acknowledging",
        "_began_ms",
        "_host",
        "_leaving",
        "_look_at_ms",
        "_pending",
        "_timer",
        "batch_sizes",
        "error",
        "is_closed",
        "is_listening",
        "key",
        "leader_epoch",
        "lock_timeouts",
        "looked_up_offset",
        "machine",
        "replica",
        "state_epoch",
        "waiters",
        "when_settled",
    )

    def __init__(self, host: Host, key: SharePartitionKey, replica: Partition) -> None:
        self._host = host
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.state_epoch = 0
        self.machine: SharePartition | None = None
        self.error = ErrorCode.NONE
        """Why the state could not be read."""
        self.waiters: dict[Waiter, None] = {}
        self._acknowledging: dict[str, int] = {}
        """The members whose acknowledgements are being applied, and how many requests contain them."""
        self._leaving: set[str] = set()
        """The members among them whose sessions have ended."""
        self._began_ms = 0
        """Monotonic time in ms when the state began to be read."""
        self._pending = 0
        """Number of changes that are being stored, and of dead letters that are being written."""
        self.when_settled: Callable[[], None] | None = None
        """Called once, when everything is stored and all dead letters are written."""
        self.is_listening = False
        self.is_closed = False
        self._timer: TimerHandle | None = None
        self._look_at_ms = NO_DEADLINE
        self.lock_timeouts = 0
        """Number of records whose acquisition locks have expired."""
        self.batch_sizes = Samples()
        """Numbers of records that were acquired at once."""
        self.looked_up_offset = -1
        """The offset whose position in the log a fetch has looked up last, or -1."""

    # --- loading

    def load(self) -> None:
        """Read the state from the share coordinator. A fetch that waits for several share-partitions gets the
        records of the one whose state is read first. Clients rely on that.
        """
        self._began_ms = self._host.scheduler.monotonic_ms()
        result = _Result(self._read, self._host.scheduler)
        self._host.persister.read(self.key, self.leader_epoch, result.arrived)
        result.is_begun = True

    def _read(self, code: ErrorCode, stored: StoredState | None) -> None:
        if self.is_closed:
            return
        if code != ErrorCode.NONE or stored is None:
            self._failed(_CODES_OF_PERSISTER.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))
        elif stored.start_offset == UNKNOWN_OFFSET:
            self._host.resolve_start(self.key.group_id, self.replica, partial(self._resolved, stored))
        else:
            self._resolved(stored, stored.start_offset)

    def _resolved(self, stored: StoredState, start_offset: int | ErrorCode) -> None:
        if self.is_closed:
            return
        if isinstance(start_offset, ErrorCode):
            self._failed(start_offset)
            return
        self.state_epoch = stored.state_epoch
        try:
            machine = SharePartition(self._host.limits(self.key.group_id), start_offset, stored.batches)
        except ValueError as error:
            log.error(
                "The stored state of share-partition %s-%s of group %s is invalid: %s. "
                "Reset the group's offsets with kafka-share-groups",
                self.replica.topic,
                self.replica.partition,
                self.key.group_id,
                error,
            )
            self._failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.machine = machine
        self._host.counts.load_ms.add(self._host.scheduler.monotonic_ms() - self._began_ms)
        self._write_dead_letters(machine.interrupted)
        self.wake()

    def _failed(self, code: ErrorCode) -> None:
        self.error = code
        self._host.forget(self)

    # --- waiting fetches

    def add_waiter(self, waiter: Waiter) -> None:
        self.waiters[waiter] = None
        if not self.is_listening:
            self.is_listening = True
            self.replica.listeners.add(self)

    def remove_waiter(self, waiter: Waiter) -> None:
        self.waiters.pop(waiter, None)
        if self.is_listening and not self.waiters:
            self.is_listening = False
            self.replica.listeners.discard(self)

    def partition_changed(self, partition: Partition) -> None:
        """Wake the waiting fetches, because records were committed or this broker lost the leadership."""
        if not partition.is_leader:
            self._host.forget(self)
        self.wake()

    def wake(self) -> None:
        for waiter in list(self.waiters):
            waiter.wake()

    def close(self) -> None:
        """Stop, because this broker is no longer leader, or the state has been fenced."""
        self.is_closed = True
        self.machine = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wake()
        if self.is_listening:
            self.is_listening = False
            self.replica.listeners.discard(self)

    # --- members

    def refresh(self) -> SharePartition | None:
        """Return the machine with the group's current settings, or None if it is not loaded."""
        machine = self.machine
        if machine is not None:
            machine.limits = self._host.limits(self.key.group_id)
        return machine

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], done: Done
    ) -> Steps[None]:
        """Acknowledge records, in steps. `done` is called when the result has been stored."""
        machine = self.refresh()
        if machine is None:
            # Nothing is acquired before the state has been read.
            done(ErrorCode.INVALID_RECORD_STATE if acknowledgements else ErrorCode.NONE)
            return
        now_ms = self._host.scheduler.monotonic_ms()
        self._acknowledging[member_id] = self._acknowledging.get(member_id, 0) + 1
        write = machine.new_write()
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            code = yield from machine.acknowledging(write, member_id, acknowledgements, now_ms)
        finally:
            # The steps also end early if the member disconnects.
            if (
                code != ErrorCode.NONE
                and write.changes
                and machine.written(write, False, self._host.scheduler.monotonic_ms())
            ):
                self.wake()
            self._acknowledged(member_id)
        if code != ErrorCode.NONE:
            done(code)
        elif self.machine is not machine:
            # Another leader decides, or this one when it has read the state again.
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            self._store(machine.sealed(write), done)

    def _acknowledged(self, member_id: str) -> None:
        """Release the records of a member whose session has ended while it acknowledged records."""
        self._acknowledging[member_id] -= 1
        if not self._acknowledging[member_id]:
            del self._acknowledging[member_id]
            if member_id in self._leaving:
                self._leaving.discard(member_id)
                self.release(member_id)

    def release(self, member_id: str) -> None:
        """Release the records of a member whose session has ended, when its acknowledgements are applied."""
        machine = self.refresh()
        if member_id in self._acknowledging:
            self._leaving.add(member_id)
        elif machine is not None:
            self._store(machine.release_acquired(member_id), lambda code: None)

    # --- storing

    def _store(self, write: Write, done: Done) -> None:
        if not write.batches:
            done(ErrorCode.NONE)
            return
        self._pending += 1
        result = _Result(partial(self._stored, write, done), self._host.scheduler)
        self._host.persister.write(
            self.key,
            self.state_epoch,
            self.leader_epoch,
            write.start_offset,
            write.delivery_complete_count,
            write.batches,
            result.arrived,
        )
        result.is_begun = True

    def _stored(self, write: Write, done: Done, code: ErrorCode) -> None:
        machine = self.machine
        self._pending -= 1
        if code != ErrorCode.NONE:
            code = _CODES_OF_PERSISTER.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
        if machine is None:
            done(code)
            return
        may_wake = machine.written(write, code == ErrorCode.NONE, self._host.scheduler.monotonic_ms())
        if code == ErrorCode.NONE or not write.changes:
            self._write_dead_letters(write.dead_letters)
        done(code)
        # Changes that have already taken effect are expired locks and written dead letters. If they cannot be
        # stored, Kafka continues with the state that it has, until a change by a member is rejected.
        if code in _FORGETTING and write.changes:
            self._host.forget(self)
            return
        if may_wake:
            self.wake()
        if self.is_settled and self.when_settled is not None:
            when_settled, self.when_settled = self.when_settled, None
            when_settled()

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to store and no dead letter to write."""
        return not self._pending

    def _write_dead_letters(self, letters: Sequence[DeadLetters]) -> None:
        if not letters:
            return
        self._pending += len(letters)
        queue = self._host.dead_letters
        if queue is None:
            self.dead_letters_written(letters)
        else:
            queue.write(self, letters)

    def dead_letters_written(self, letters: Sequence[DeadLetters]) -> None:
        """Archive records that have been written to the dead letter queue, or cannot be written to it."""
        self._pending -= len(letters)
        if self.machine is not None:
            self._store(self.machine.dead_letters_written(letters), lambda code: None)

    # --- acquisition locks

    def locked(self, now_ms: int, duration_ms: int) -> None:
        """Watch the acquisition locks, because records have been acquired or renewed at `now_ms`."""
        if self._timer is None or now_ms + duration_ms < self._look_at_ms:
            self._look_at(now_ms + duration_ms, now_ms)

    def _look_at(self, at_ms: int, now_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._look_at_ms = at_ms
        self._timer = self._host.scheduler.call_later(max(at_ms - now_ms, _LOOK_MIN_MS), self._due)

    def _due(self) -> None:
        self._host.in_turn(self._look)

    def _look(self) -> None:
        self._timer = None
        machine = self.refresh()
        if machine is None:
            return
        now_ms = self._host.scheduler.monotonic_ms()
        write = machine.expire(now_ms)
        next_ms = machine.next_deadline_ms(now_ms)
        if next_ms != NO_DEADLINE:
            self._look_at(next_ms, now_ms)
        self._expired(write)

    def expire_locks(self) -> int:
        """Expire all acquisition locks now, whatever their deadlines. Return the number of their records."""
        machine = self.refresh()
        before = self.lock_timeouts
        self._expired(None if machine is None else machine.expire(_END_OF_TIME_MS))
        return self.lock_timeouts - before

    def _expired(self, write: Write | None) -> None:
        if write is not None:
            self.lock_timeouts += sum(each.last_offset - each.first_offset + 1 for each in write.batches)
            self._store(write, lambda code: None)
            self.wake()


class _Result:
    """The result of reading or storing. If it is known at once, it takes effect only after the current
    request, as if the share coordinator were on another broker.
    """

    __slots__ = ("_done", "_scheduler", "is_begun")

    def __init__(self, done: Callable[..., None], scheduler: Scheduler) -> None:
        self._done = done
        self._scheduler = scheduler
        self.is_begun = False

    def arrived(self, *outcome: object) -> None:
        if self.is_begun:
            self._done(*outcome)
        else:
            self._scheduler.call_later(0, partial(self._done, *outcome))
