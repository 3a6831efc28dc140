"""A disk in memory with a metadata log, quorum-state and snapshots. A crash loses what was not flushed."""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import NamedTuple

from kafka_compat.coordination.raft.log_state import LogState
from kafka_compat.coordination.raft.values import Batch, ElectionState, OffsetAndEpoch, VoterSet


class Stored(NamedTuple):
    """A batch on disk: its header, and one value for each record."""

    header: Batch
    values: tuple[str, ...]


class SnapshotFile(NamedTuple):
    """A snapshot: all committed records below its end, as (epoch, value)."""

    records: tuple[tuple[int, str], ...]
    voters: VoterSet | None


class Disk:
    def __init__(self, voters: VoterSet | None = None) -> None:
        self.election = ElectionState()
        self.batches: list[Stored] = []
        self.start = OffsetAndEpoch(0, 0)
        self.flushed_end = 0
        self.flush_target: int | None = None
        self.is_changed = False
        self.snapshots: dict[OffsetAndEpoch, SnapshotFile] = {}
        if voters:
            self.snapshots[OffsetAndEpoch(0, 0)] = SnapshotFile((), voters)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.last_offset + 1 if self.batches else self.start.offset

    @property
    def latest(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def append(self, header: Batch, values: tuple[str, ...]) -> None:
        assert header.base_offset == self.end_offset, (header, self.end_offset)
        assert header.last_offset - header.base_offset + 1 == len(values)
        self.is_changed = True
        self.batches.append(Stored(header, values))

    def truncate(self, offset: int) -> list[Stored]:
        """Remove the batches from this offset on, and return them."""
        self.is_changed = True
        removed = [item for item in self.batches if item.header.base_offset >= offset]
        self.batches = [item for item in self.batches if item.header.base_offset < offset]
        assert self.end_offset == offset, "truncated within a batch"
        self.flushed_end = min(self.flushed_end, offset)
        if self.flush_target is not None:
            self.flush_target = min(self.flush_target, offset)
        return removed

    def install(self, snapshot: OffsetAndEpoch) -> None:
        assert snapshot in self.snapshots
        self.is_changed = True
        self.batches.clear()
        self.start = snapshot
        self.flushed_end = snapshot.offset
        if self.flush_target is not None:
            self.flush_target = snapshot.offset

    def move_start(self, snapshot: OffsetAndEpoch) -> None:
        """Begin the log at the end of a snapshot."""
        self.batches = [item for item in self.batches if item.header.base_offset >= snapshot.offset]
        self.is_changed = True
        self.start = snapshot
        self.flushed_end = max(self.flushed_end, snapshot.offset)

    def end_flush(self) -> None:
        assert self.flush_target is not None
        self.flushed_end = max(self.flushed_end, self.flush_target)
        self.flush_target = None

    def crash(self, chance: random.Random) -> None:
        """Lose records that were not flushed, all or some."""
        ends = [self.flushed_end]
        ends += [
            item.header.last_offset + 1
            for item in self.batches
            if item.header.last_offset + 1 > self.flushed_end
        ]
        self.flush_target = None
        self.truncate(chance.choice(ends))
        self.flushed_end = self.end_offset

    def wipe(self) -> None:
        """Lose the log and the snapshots, but not quorum-state."""
        self.batches.clear()
        self.snapshots.clear()
        self.start = OffsetAndEpoch(0, 0)
        self.flushed_end = 0

    def batches_from(self, offset: int) -> list[Stored]:
        return self.batches[bisect_left(self.batches, offset, key=lambda item: item.header.base_offset) :]

    def records(self, offset: int, end: int) -> list[tuple[int, int, str]]:
        """Return (offset, epoch, value) of the records from an offset on."""
        first = bisect_left(self.batches, offset, key=lambda item: item.header.last_offset)
        return [
            (header.base_offset + index, header.epoch, value)
            for header, values in self.batches[first:]
            if header.last_offset >= offset and header.base_offset < end
            for index, value in enumerate(values)
            if offset <= header.base_offset + index < end
        ]

    def log_state(self) -> LogState:
        epochs: list[tuple[int, int]] = []
        voter_sets: list[tuple[int, VoterSet]] = []
        latest = self.snapshots.get(self.start)
        if latest is not None and latest.voters is not None:
            voter_sets.append((self.start.offset - 1, latest.voters))
        for header, _ in self.batches:
            if not epochs or epochs[-1][0] != header.epoch:
                epochs.append((header.epoch, header.base_offset))
            if header.voters is not None:
                voter_sets.append((header.base_offset, header.voters))
        return LogState(self.start, self.end_offset, epochs, self.latest, voter_sets)
