"""A share-partition: the delivery states of a partition's records for one share group (KIP-932).

It decides in memory, does no I/O and reads no clock. Times are monotonic and in ms.

Rules
1. The start offset is the first offset that is not finally delivered. Records between it and the end offset
   are in flight: available again, acquired by a member, acknowledged or archived. Records after the end
   offset have never been delivered.
2. A change of state by a member is stored before it takes effect (`Write`). Until then, its records cannot
   be acquired. If it cannot be stored, it is rolled back. Acquisitions are not stored. The expiry of locks
   takes effect at once, and is stored afterwards.
3. Released records whose delivery count has reached the limit are archived, or go to the dead letter queue.
4. The start offset advances over records whose delivery is complete when a change has been stored. It also
   follows the start of the log, but only when a fetch finds that its records have been deleted. Available
   records before it are then archived, and acquired ones when they are released.
5. Offsets between stored batches are a gap: their states were not stored, and they are acquired again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps, finished
from kafka_compat.share_coordinator.persister import StateBatch
from kafka_compat.share_partitions.changes import (
    CLIENT_REJECT,
    DELIVERY_COUNT_EXCEEDED,
    REJECT,
    RENEW,
    STATE_AFTER,
    Acknowledgement,
    Change,
    DeadLetters,
    Limits,
    Write,
    of_one_type,
)
from kafka_compat.share_partitions.in_flight import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    NO_DEADLINE,
    InFlightBatch,
    Run,
    Transition,
    is_terminal,
)

_NO_OFFSET: Final = -1
_ACKNOWLEDGED_AT_ONCE: Final = 50
"""Number of separate acknowledgements in one step."""


class SharePartition:
    """The delivery states of one share-partition, according to the rules of this module."""

    def __init__(self, limits: Limits, start_offset: int, stored: Sequence[StateBatch] = ()) -> None:
        """`start_offset` is the stored one, or the resolved one if none was stored. Raises ValueError if the
        stored batches are invalid.
        """
        self.limits = limits
        self.start_offset = start_offset
        self.end_offset = start_offset
        """The last offset in flight. If no record is in flight, the next offset to acquire."""
        self.delivery_complete_count = 0
        """Number of records from the start offset on whose delivery is complete (KIP-1226)."""
        self.batches: list[InFlightBatch] = []
        self.firsts: list[int] = []
        """The first offsets of `batches`, for binary searches."""
        self.gap_start = _NO_OFFSET
        self.gap_end = _NO_OFFSET
        """The gaps between stored batches lie in [gap_start, gap_end]. They are ignored once `gap_end` is no
        longer the end offset.
        """
        self.may_be_available = False
        """Whether records in flight may be available. False is certain."""
        self.interrupted: list[DeadLetters] = []
        """The records that a former leader did not finish writing to the dead letter queue."""
        if stored:
            self._load(stored)

    def _load(self, stored: Sequence[StateBatch]) -> None:
        end = self.start_offset - 1
        for batch in stored:
            if batch.first_offset <= end or batch.last_offset < batch.first_offset:
                raise ValueError(f"{batch} is not after offset {end}")
            if batch.first_offset > end + 1 and self.gap_start == _NO_OFFSET:
                self.gap_start = end + 1
            end = batch.last_offset
            self.insert(
                InFlightBatch(
                    Run(batch.first_offset, end, batch.delivery_state, batch.delivery_count),
                )
            )
            if is_terminal(batch.delivery_state):
                self.delivery_complete_count += end - batch.first_offset + 1
            elif batch.delivery_state == ARCHIVING:
                is_last = batch.delivery_count >= self.limits.delivery_count_limit
                self.interrupted.append(
                    DeadLetters(
                        batch.first_offset,
                        end,
                        batch.delivery_count,
                        DELIVERY_COUNT_EXCEEDED if is_last else CLIENT_REJECT,
                    )
                )
        self.end_offset = end
        self.may_be_available = True
        if self.gap_start != _NO_OFFSET:
            self.gap_end = end
        self.advance()

    # --- what is in flight

    @property
    def has_gap(self) -> bool:
        """Whether there may be offsets between the batches that have never been acquired."""
        return self.gap_start != _NO_OFFSET and self.gap_end == self.end_offset

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def _is_empty(self) -> bool:
        return not self.batches or self.start_offset > self.batches[-1].last

    def floor(self, offset: int) -> int:
        """Return the index of the last batch that begins at or before `offset`, or -1."""
        return bisect_right(self.firsts, offset) - 1

    def slice(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that begin in [first, last]."""
        start, end = bisect_left(self.firsts, first), bisect_right(self.firsts, last)
        return self.batches[start:end]

    def insert(self, batch: InFlightBatch) -> None:
        if not self.firsts or batch.first > self.firsts[-1]:
            self.batches.append(batch)
            self.firsts.append(batch.first)
        else:
            at = bisect_left(self.firsts, batch.first)
            self.batches.insert(at, batch)
            self.firsts.insert(at, batch.first)

    def next_fetch_offset(self) -> int:
        """Return the first offset that may be acquired: available, in a gap, or after the end offset."""
        if self._is_empty:
            self.may_be_available = False
            return self.end_offset
        if self.may_be_available:
            has_gap = self.has_gap
            gap = self.gap_start
            for batch in self.batches:
                if has_gap:
                    if batch.first > gap:
                        return gap
                    gap = max(batch.last + 1, gap)
                for run in batch.runs:
                    if run.state == AVAILABLE and run.pending is None:
                        return run.first
            self.may_be_available = False
        return self.end_offset + 1

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may acquire records, now or when new ones are committed."""
        return (
            self.next_fetch_offset() != self.end_offset + 1
            or self.in_flight_count < self.limits.max_record_locks
        )

    def next_deadline_ms(self, now_ms: int) -> int:
        """Return the earliest deadline of an acquisition lock after `now_ms`, or NO_DEADLINE."""
        earliest = NO_DEADLINE
        for batch in self.batches:
            for run in batch.runs:
                deadline_ms = run.deadline_ms
                if deadline_ms > now_ms and (earliest == NO_DEADLINE or deadline_ms < earliest):
                    earliest = deadline_ms
        return earliest

    # --- acknowledgements

    def acknowledge(
        self, member: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Write | ErrorCode:
        """Acknowledge records of a member. Nothing changes if one of them is not acquired by the member
        (INVALID_RECORD_STATE) or not in flight (INVALID_REQUEST). Renewals take effect at once.
        """
        write = self.new_write()
        code = finished(self.acknowledging(write, member, acknowledgements, now_ms))
        if code == ErrorCode.NONE:
            return self.sealed(write)
        if write.changes:
            self.written(write, False, now_ms)
        return code

    def acknowledging(
        self, write: Write, member: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Steps[ErrorCode]:
        """Acknowledge records in steps, between which the changes are pending. They are added to `write`.
        Afterwards, store the sealed write, or roll its changes back (`written`) if there is an error, or if
        the steps are not finished.
        """
        changed: dict[InFlightBatch, None] = {}
        try:
            for position, acknowledgement in enumerate(acknowledgements, 1):
                if acknowledgement.last < self.start_offset:
                    continue
                code = yield from self._acknowledge(member, acknowledgement, now_ms, write, changed)
                if code != ErrorCode.NONE:
                    return code
                if not position % _ACKNOWLEDGED_AT_ONCE:
                    yield None
            if len(write.changes) > _ACKNOWLEDGED_AT_ONCE:
                # To store the result takes long, too.
                yield None
        finally:
            for batch in changed:
                batch.compact()
        return ErrorCode.NONE

    def _acknowledge(
        self,
        member: str,
        acknowledgement: Acknowledgement,
        now_ms: int,
        write: Write,
        changed: dict[InFlightBatch, None],
    ) -> Steps[ErrorCode]:
        """Apply one acknowledgement, in steps. The runs of `changed` batches remain to be joined: doing this
        for each acknowledgement of a single offset would take long.
        """
        first, last, types = acknowledgement
        at = self.floor(first)
        if at < 0 and first < self.start_offset <= last:
            at = self.floor(self.start_offset)
        if at < 0:
            return ErrorCode.INVALID_RECORD_STATE
        end = bisect_right(self.firsts, last)
        batches = self.batches[at:end]
        if not batches or batches[-1].last < first or batches[-1].last < last:
            return ErrorCode.INVALID_REQUEST
        from_offset = max(first, self.start_offset)
        for batch in batches:
            if batch.last < from_offset:
                continue
            low, high = max(batch.first, from_offset), min(batch.last, last)
            changed[batch] = None
            for run in batch.within(low, high):
                if run.state != ACQUIRED or run.pending is not None or run.member != member:
                    return ErrorCode.INVALID_RECORD_STATE
            ranges = of_one_type(first, low, high, types)
            for position, (low_of_type, high_of_type, kind) in enumerate(ranges, 1):
                if not position % _ACKNOWLEDGED_AT_ONCE:
                    yield None
                if kind == RENEW and not self.limits.is_renew_enabled:
                    return ErrorCode.INVALID_RECORD_STATE
                if len(types) > 1 or not batch.covers(low, high):
                    batch.is_split = True
                for run in batch.cut(low_of_type, high_of_type):
                    if run.state != ACQUIRED or run.pending is not None or run.member != member:
                        # A lock has expired between two steps.
                        return ErrorCode.INVALID_RECORD_STATE
                    if kind == RENEW:
                        run.deadline_ms = now_ms + self.limits.lock_duration_ms
                    else:
                        self._change(run, STATE_AFTER[kind], write, kind == REJECT)
        return ErrorCode.NONE

    def release_acquired(self, member: str) -> Write:
        """Release all records that the member has acquired, because its session has ended."""
        write = self.new_write()
        for batch in self.batches:
            is_changed = False
            for run in batch.runs[:]:
                if run.state == ACQUIRED and run.member == member:
                    is_changed = True
                    for part in self._divided(batch, run):
                        self._change(part, self._state_of_released(part), write)
            if is_changed:
                batch.compact()
        return self.sealed(write)

    def _divided(self, batch: InFlightBatch, run: Run) -> list[Run]:
        """Divide a run at the start offset, which makes its batch split."""
        start_offset = self.start_offset
        if batch.first < start_offset <= batch.last:
            batch.is_split = True
        last = run.last
        if not run.first < start_offset <= last:
            return [run]
        return [*batch.cut(run.first, start_offset - 1), *batch.cut(start_offset, last)]

    def _state_of_released(self, run: Run) -> int:
        return ARCHIVED if run.last < self.start_offset else AVAILABLE

    def _change(self, run: Run, state: int, write: Write, is_rejected: bool = False) -> None:
        """Begin a state change of acquired records."""
        limits = self.limits
        transition = Transition(run.state, run.member, limits.delivery_count_limit)
        if is_rejected and limits.has_dead_letters:
            state = ARCHIVING
        run.settle(state, limits.delivery_count_limit, limits.has_dead_letters)
        run.pending = transition
        state = run.state
        write.batches.append(StateBatch(run.first, run.last, state, run.delivery_count))
        write.changes.append(Change(run.first, run.last, state, transition))
        if state == ARCHIVING:
            cause = CLIENT_REJECT if is_rejected else DELIVERY_COUNT_EXCEEDED
            write.dead_letters.append(DeadLetters(run.first, run.last, run.delivery_count, cause))
        elif is_terminal(state):
            self.delivery_complete_count += self.count_from_start(run.first, run.last)

    def new_write(self) -> Write:
        """Return a write without changes."""
        return Write(0, 0, [], [], [])

    def sealed(self, write: Write) -> Write:
        """Return a write with the current start offset, to be stored."""
        return write._replace(
            start_offset=self.start_offset, delivery_complete_count=self.delivery_complete_count
        )

    # --- results of storing

    def written(self, write: Write, is_stored: bool, now_ms: int) -> bool:
        """Complete the changes if they have been stored, or roll them back. Return whether waiting fetches
        must look again. Afterwards, `write.dead_letters` are to be written if they have been stored.
        """
        if not is_stored and write.changes:
            self._roll_back(write.changes, now_ms)
            # Records whose locks have expired may be archived, so that all records in flight are complete.
            return self.advance() or self.may_be_available
        changed: dict[InFlightBatch, None] = {}
        for change in write.changes:
            for batch in self._holding(change.first, change.last):
                changed[batch] = None
                for run in batch.within(change.first, change.last):
                    if run.pending is change.transition:
                        run.commit()
                        if run.state == AVAILABLE:
                            self.may_be_available = True
        for batch in changed:
            batch.compact()
        return self.advance() or self.may_be_available

    def _roll_back(self, changes: Sequence[Change], now_ms: int) -> None:
        changed: dict[InFlightBatch, None] = {}
        for change in changes:
            for batch in self._holding(change.first, change.last):
                changed[batch] = None
                for run in list(batch.within(change.first, change.last)):
                    if run.pending is not change.transition:
                        continue
                    run.roll_back(now_ms)
                    if run.state == AVAILABLE:
                        self.may_be_available = True
                        self._archive_before_start(batch, run)
                    if is_terminal(change.state) and not is_terminal(run.state):
                        self.delivery_complete_count -= self.count_from_start(run.first, run.last)
        for batch in changed:
            batch.compact()

    def _archive_before_start(self, batch: InFlightBatch, run: Run) -> None:
        """Archive released records whose log has been deleted: they must not be fetched again."""
        for part in self._divided(batch, run):
            if part.last < self.start_offset:
                part.archive()

    def _holding(self, first: int, last: int) -> list[InFlightBatch]:
        start, end = max(self.floor(first), 0), bisect_right(self.firsts, last)
        return self.batches[start:end]

    def count_from_start(self, first: int, last: int) -> int:
        """Return the number of offsets in [first, last] that are not before the start offset."""
        return max(last - max(first, self.start_offset) + 1, 0)

    def dead_letters_written(self, letters: Iterable[DeadLetters]) -> Write:
        """Archive records that have been written to the dead letter queue, or could not be written to it.
        The returned changes have taken effect.
        """
        write = self.new_write()
        ranges = sorted((each.first, each.last) for each in letters)
        if not ranges:
            return self.sealed(write)
        for batch in self._holding(ranges[0][0], ranges[-1][1]):
            for run in batch.cut_ranges(ranges):
                if run.state == ARCHIVING and run.pending is None:
                    run.archive()
                    write.batches.append(StateBatch(run.first, run.last, ARCHIVED, run.delivery_count))
                    self.delivery_complete_count += self.count_from_start(run.first, run.last)
            batch.compact_within(ranges[0][0], ranges[-1][1])
        return self.sealed(write)

    # --- time

    def expire(self, now_ms: int) -> Write | None:
        """Release the records whose acquisition locks have expired. The returned changes have taken effect,
        whether or not they can be stored. Return None if there are none.
        """
        write = self.new_write()
        for batch in self.batches:
            is_changed = False
            for run in batch.runs[:]:
                if run.state == ACQUIRED and NO_DEADLINE < run.deadline_ms <= now_ms:
                    is_changed = True
                    for part in self._divided(batch, run):
                        self._expire_run(part, write)
            if is_changed:
                batch.compact()
        return self.sealed(write) if write.batches else None

    def _expire_run(self, run: Run, write: Write) -> None:
        limits = self.limits
        run.settle(self._state_of_released(run), limits.delivery_count_limit, limits.has_dead_letters)
        run.deadline_ms = NO_DEADLINE
        state = run.state
        write.batches.append(StateBatch(run.first, run.last, state, run.delivery_count))
        if state == AVAILABLE:
            self.may_be_available = True
        elif state == ARCHIVING:
            write.dead_letters.append(
                DeadLetters(run.first, run.last, run.delivery_count, DELIVERY_COUNT_EXCEEDED)
            )
        else:
            self.delivery_complete_count += self.count_from_start(run.first, run.last)

    # --- start offset

    def advance(self) -> bool:
        """Move the start offset over records whose delivery is complete. Return whether it moved."""
        if not self._starts_complete():
            return False
        complete_end, complete_count = self._complete_prefix()
        if complete_end == _NO_OFFSET:
            return False
        if complete_end == self.batches[-1].last:
            self.start_offset = self.end_offset = complete_end + 1
            self.batches.clear()
            self.firsts.clear()
            self.delivery_complete_count = 0
            return True
        at = self.floor(complete_end)
        if complete_end == self.batches[at].last:
            self.start_offset = max(self.start_offset, self.firsts[at + 1])
            if self.has_gap:
                self.start_offset = min(self.gap_start, self.start_offset)
            removed = at + 1
        else:
            self.start_offset = max(self.start_offset, complete_end + 1)
            removed = at
        self.delivery_complete_count -= complete_count
        del self.batches[:removed]
        del self.firsts[:removed]
        return True

    def _starts_complete(self) -> bool:
        """Return whether the delivery of the record at the start offset is complete."""
        at = self.floor(self.start_offset)
        if at < 0:
            return False
        batch, start_offset = self.batches[at], self.start_offset
        run = batch.runs[-1] if batch.last < start_offset else next(batch.within(start_offset, start_offset))
        return run.pending is None and is_terminal(run.state)

    def _complete_prefix(self) -> tuple[int, int]:
        """Return the last offset of the records at the front whose delivery is complete, or -1, and how many
        of them are not before the start offset.
        """
        end, count = _NO_OFFSET, 0
        has_gap = self.has_gap
        for batch in self.batches:
            if has_gap and batch.last >= self.gap_start:
                break
            for run in batch.runs:
                if run.pending is not None or not is_terminal(run.state):
                    return end, count
                end = run.last
                count += self.count_from_start(run.first, run.last)
        return end, count

    def log_starts_at(self, log_start_offset: int) -> None:
        """Move the start offset to the start of the log, because records have been deleted."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        end = self.floor(log_start_offset - 1) + 1
        complete = sum(
            self.count_from_start(run.first, min(run.last, log_start_offset - 1))
            for batch in self.batches[:end]
            for run in batch.runs
            if run.first < log_start_offset and is_terminal(run.state)
        )
        if self.archive(self.start_offset, log_start_offset - 1, self.batches, AVAILABLE, counts=False):
            self.may_be_available = True
        self.start_offset = log_start_offset
        self.delivery_complete_count -= complete
        self.end_offset = max(self.end_offset, log_start_offset)

    def archive(
        self, first: int, last: int, batches: Sequence[InFlightBatch], state: int, *, counts: bool
    ) -> bool:
        """Archive the records of [first, last] in these batches that have this state, without storing it.
        Return whether there are any. With `counts`, they count as delivered.
        """
        archived = False
        for batch in batches:
            if batch.first > last:
                break
            if batch.last < first:
                continue
            if not batch.is_split and not batch.covers(first, last):
                if batch.runs[0].state != state:
                    continue
                batch.is_split = True
            for run in batch.cut(first, last):
                if run.state == state:
                    run.archive()
                    archived = True
                    if counts:
                        self.delivery_complete_count += run.last - run.first + 1
            batch.compact()
        return archived
