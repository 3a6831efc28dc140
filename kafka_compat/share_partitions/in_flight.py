"""Records in flight of a share-partition: batches of offsets, and the delivery states within a batch.

A batch is what one member acquired at once. As long as all its records have one state, it is whole. When the
states of its records begin to differ, it is split: it then consists of runs of offsets that have the same
state. A batch is never joined with another, and a split batch is never whole again, because clients can tell:
only whole batches are acquired as a whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

AVAILABLE: Final = 0
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3
"""The record is about to be written to the group's dead letter queue."""
ARCHIVED: Final = 4

NO_MEMBER: Final = ""
NO_DEADLINE: Final = 0


def is_terminal(state: int) -> bool:
    """Return whether the delivery of a record in this state is complete."""
    return state in (ACKNOWLEDGED, ARCHIVED)


class Transition:
    """A state change that is not stored yet, and the state to which it returns if it cannot be stored."""

    __slots__ = ("delivery_limit", "member", "state")

    def __init__(self, state: int, member: str, delivery_limit: int) -> None:
        self.state = state
        self.member = member
        self.delivery_limit = delivery_limit


class Run:
    """Adjacent offsets with the same state, from `first` to `last`."""

    __slots__ = (
        "deadline_ms",
        "delivery_count",
        "first",
        "is_archived",
        "last",
        "member",
        "pending",
        "state",
    )

    def __init__(
        self,
        first: int,
        last: int,
        state: int,
        delivery_count: int,
        member: str = NO_MEMBER,
        deadline_ms: int = NO_DEADLINE,
        pending: Transition | None = None,
        is_archived: bool = False,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member = member
        """The member that has acquired the records, or NO_MEMBER."""
        self.deadline_ms = deadline_ms
        """Monotonic time in ms when the acquisition lock expires, or NO_DEADLINE. The lock is kept while a
        state change is pending, because the change may be rolled back.
        """
        self.pending = pending
        self.is_archived = is_archived
        """Whether the records were archived while a change was pending, which then has no effect."""

    @property
    def is_available(self) -> bool:
        """Whether a member may acquire the records."""
        return self.state == AVAILABLE and self.pending is None

    def acquire(self, member: str, deadline_ms: int) -> None:
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member = member
        self.deadline_ms = deadline_ms

    def archive(self) -> None:
        """Archive the records, whatever their state."""
        self.state = ARCHIVED
        self.is_archived = self.pending is not None
        self.member = NO_MEMBER
        self.deadline_ms = NO_DEADLINE

    def settle(self, state: int, delivery_limit: int, has_dead_letters: bool) -> None:
        """Release, acknowledge or archive acquired records. Records that would become available, but have
        been delivered `delivery_limit` times, are archived instead, or archiving if `has_dead_letters`.
        """
        if state == AVAILABLE and self.delivery_count >= delivery_limit:
            state = ARCHIVING if has_dead_letters else ARCHIVED
        self.state = state
        self.member = NO_MEMBER

    def commit(self) -> None:
        """Complete the pending change."""
        self.pending = None
        self.is_archived = False
        self.deadline_ms = NO_DEADLINE

    def roll_back(self, now_ms: int) -> None:
        """Undo the pending change. If the acquisition lock has expired, the records are released."""
        pending = self.pending
        assert pending is not None
        self.pending = None
        if self.is_archived:
            self.is_archived = False
            self.deadline_ms = NO_DEADLINE
        elif NO_DEADLINE < self.deadline_ms <= now_ms:
            self.state = ARCHIVED if self.delivery_count >= pending.delivery_limit else AVAILABLE
            self.member = NO_MEMBER
            self.deadline_ms = NO_DEADLINE
        else:
            self.state = pending.state
            self.member = pending.member

    def _split_at(self, offset: int) -> Run:
        """Shorten this run to end before `offset`, and return the remainder."""
        rest = Run(
            offset,
            self.last,
            self.state,
            self.delivery_count,
            self.member,
            self.deadline_ms,
            self.pending,
            self.is_archived,
        )
        self.last = offset - 1
        return rest

    def _continues(self, other: Run) -> bool:
        """Return whether this run has the same state as `other`, the run before it."""
        return (
            self.state == other.state
            and self.delivery_count == other.delivery_count
            and self.pending is other.pending
            and self.member == other.member
            and self.deadline_ms == other.deadline_ms
            and self.is_archived == other.is_archived
        )


class InFlightBatch:
    """The records from `first` to `last`, which were acquired at once. `runs` covers them in order."""

    __slots__ = ("first", "is_split", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]
        self.is_split = False
        """Whether the batch is no longer whole. A whole batch has one run."""

    def __len__(self) -> int:
        return self.last - self.first + 1

    def covers(self, first: int, last: int) -> bool:
        """Return whether [first, last] contains the whole batch."""
        return first <= self.first and self.last <= last

    def _index(self, offset: int) -> int:
        """Return the index of the first run that ends at or after `offset`."""
        runs = self.runs
        return 0 if runs[0].last >= offset else bisect_left(runs, offset, key=_last_of)

    def cut(self, first: int, last: int) -> list[Run]:
        """Return the runs within [first, last]. Runs that extend beyond it are divided. The batch must be
        split, or lie within [first, last].
        """
        found: list[Run] = []
        runs = self.runs
        at = self._index(first)
        while at < len(runs):
            run = runs[at]
            if run.first > last:
                break
            if run.first < first:
                runs.insert(at + 1, run._split_at(first))
                at += 1
                run = runs[at]
            if run.last > last:
                runs.insert(at + 1, run._split_at(last + 1))
            found.append(run)
            at += 1
        return found

    def cut_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[Run]:
        """Return the runs within these ranges, as `cut` does. The ranges are in order and do not overlap."""
        found: list[Run] = []
        runs: list[Run] = []
        at = bisect_right(ranges, self.first, key=lambda each: each[1] + 1)
        for run in self.runs:
            rest = run
            while at < len(ranges) and ranges[at][0] <= rest.last:
                first, last = ranges[at]
                if last >= rest.first:
                    if rest.first < first:
                        runs.append(rest)
                        rest = rest._split_at(first)
                    found.append(rest)
                    if rest.last <= last:
                        break
                    runs.append(rest)
                    rest = rest._split_at(last + 1)
                at += 1
            runs.append(rest)
        self.is_split = self.is_split or len(runs) > 1
        self.runs = runs
        return found

    def within(self, first: int, last: int) -> Iterator[Run]:
        """Yield the runs that contain offsets of [first, last], without dividing them."""
        runs = self.runs
        at = self._index(first)
        while at < len(runs):
            run = runs[at]
            if run.first > last:
                return
            yield run
            at += 1

    def compact(self) -> None:
        """Join adjacent runs with the same state."""
        if len(self.runs) > 1:
            self.runs = _joined(self.runs)

    def compact_within(self, first: int, last: int) -> None:
        """Join the runs of [first, last] that have the same state, also with the runs beside them."""
        runs = self.runs
        if len(runs) > 1:
            begin, end = max(self._index(first) - 1, 0), self._index(last) + 2
            runs[begin:end] = _joined(runs[begin:end])


def _last_of(run: Run) -> int:
    return run.last


def _joined(runs: list[Run]) -> list[Run]:
    joined = [runs[0]]
    for run in runs[1:]:
        before = joined[-1]
        if run._continues(before):
            before.last = run.last
        else:
            joined.append(run)
    return joined
