"""The machine's picture of the log: offsets, epochs, snapshots and sets of voters, without the records.

Rules:
- Epochs never fall within a log. Records of an epoch are appended by its only leader, so two logs whose
  records at an offset have the same epoch are equal up to there.
- Records below `flushed_end` survive a crash. A flush that was under way during a truncation counts only for
  the records below it.
- A fetch names the end of its log and the epoch of the last record before it. It is valid if that epoch
  exists in this log, and does not end before the offset. Otherwise the answer names where the logs may last
  have been equal.
- The beginning of a log is known only from its snapshot: a fetch before it needs the snapshot, and so does a
  fetch from offset 0 (as in Kafka 4.4). The snapshot 0-0 that `storage format` writes is never sent.
- A set of voters counts from its offset on, when it is appended; a truncation undoes it.
"""

from bisect import bisect_right
from collections.abc import Iterable

from kafka_compat.coordination.raft.values import Batch, OffsetAndEpoch, VoterSet


class LogState:
    """The log of a node. The driver creates it after it has read, recovered and flushed the log at startup.

    `start` is the log start offset, and the epoch of the record before it (0-0: the log is complete).
    `epochs` has the first offset of each epoch in the log, ascending: pairs of epoch and offset.
    `snapshot` is the latest snapshot on disk. `voter_sets` has the sets of voters in the snapshot and in the
    log, each with its offset (-1 for that of a snapshot 0-0).
    """

    def __init__(
        self,
        start: OffsetAndEpoch = OffsetAndEpoch(0, 0),  # noqa: B008
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshot: OffsetAndEpoch | None = None,
        voter_sets: Iterable[tuple[int, VoterSet]] = (),
    ) -> None:
        self.start = start
        self.end_offset = end_offset
        self.flushed_end = end_offset
        self.snapshot = snapshot
        self.voter_sets = list(voter_sets)
        self._epochs = list(epochs)
        self._flushing_end: int | None = None

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record: that of the snapshot if the log is empty, 0 if there is none."""
        return self._epochs[-1][0] if self._epochs else self.start.epoch

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """The first offset of each epoch in the log: pairs of epoch and offset."""
        return tuple(self._epochs)

    @property
    def voters(self) -> VoterSet | None:
        """The last set of voters in the log or the snapshot, committed or not."""
        return self.voter_sets[-1][1] if self.voter_sets else None

    @property
    def voters_offset(self) -> int:
        """The offset of the last set of voters; -1 if there is none."""
        return self.voter_sets[-1][0] if self.voter_sets else -1

    # --- changes

    def append(self, batch: Batch) -> None:
        """Append a batch. Raises ValueError unless it follows the last one, with no lower epoch."""
        if batch.base_offset != self.end_offset or batch.last_offset < batch.base_offset:
            raise ValueError(f"batch {batch} does not follow the end of the log, {self.end}")
        if batch.epoch < self.last_epoch:
            raise ValueError(f"batch {batch} has a lower epoch than the end of the log, {self.end}")
        if not self._epochs or self._epochs[-1][0] != batch.epoch:
            self._epochs.append((batch.epoch, batch.base_offset))
        if batch.voters is not None:
            self.voter_sets.append((batch.base_offset, batch.voters))
        self.end_offset = batch.last_offset + 1

    def truncate(self, offset: int) -> None:
        """Remove all records from this offset on, and the sets of voters in them."""
        self.end_offset = min(self.end_offset, offset)
        self.flushed_end = min(self.flushed_end, offset)
        if self._flushing_end is not None:
            self._flushing_end = min(self._flushing_end, offset)
        while self._epochs and self._epochs[-1][1] >= offset:
            self._epochs.pop()
        while self.voter_sets and self.voter_sets[-1][0] >= offset:
            self.voter_sets.pop()

    def install(self, snapshot: OffsetAndEpoch, voters: VoterSet | None) -> None:
        """Replace everything with a snapshot that was fetched."""
        self.start = self.snapshot = snapshot
        self.end_offset = self.flushed_end = snapshot.offset
        self._epochs.clear()
        self.voter_sets = [] if voters is None else [(snapshot.offset - 1, voters)]
        if self._flushing_end is not None:
            self._flushing_end = snapshot.offset

    def move_start(self, offset: int) -> None:
        """Forget the records below the offset, at the end of a snapshot of this node."""
        if offset <= self.start.offset:
            return
        self.start = OffsetAndEpoch(offset, self.epoch_before(offset))
        index = bisect_right(self._epochs, offset, key=lambda item: item[1]) - 1
        if index >= 0:
            del self._epochs[:index]
            self._epochs[0] = (self._epochs[0][0], offset)
        if self._epochs and offset == self.end_offset:
            self._epochs.clear()
        while len(self.voter_sets) > 1 and self.voter_sets[1][0] < offset:
            self.voter_sets.pop(0)

    def begin_flush(self) -> int | None:
        """Begin a flush if one is needed and none is under way. Returns the offset up to which it counts."""
        if self._flushing_end is not None or self.flushed_end >= self.end_offset:
            return None
        self._flushing_end = self.end_offset
        return self.end_offset

    def end_flush(self) -> None:
        """The flush has ended."""
        if self._flushing_end is not None:
            self.flushed_end = max(self.flushed_end, self._flushing_end)
            self._flushing_end = None

    # --- questions

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the last record before the offset; the offset is in the log or at its end."""
        epoch = self.start.epoch
        for item, first in self._epochs:
            if first >= offset:
                break
            epoch = item
        return epoch

    def end_of(self, epoch: int) -> OffsetAndEpoch:
        """Return the end of the last epoch that is not above this one, as in OffsetForLeaderEpoch."""
        index = bisect_right(self._epochs, epoch, key=lambda item: item[0])
        if index == len(self._epochs):
            return self.end
        if index == 0:
            return self.start
        return OffsetAndEpoch(self._epochs[index][1], self._epochs[index - 1][0])

    def check_fetch(
        self, offset: int, last_epoch: int
    ) -> tuple[OffsetAndEpoch | None, OffsetAndEpoch | None]:
        """Return how a fetch diverges, or the snapshot that it needs; both are None if it is valid."""
        latest = self.snapshot
        if latest is not None and latest.offset > 0:
            at_start = offset == self.start.offset and last_epoch != self.start.epoch
            if offset == 0 or offset < self.start.offset or at_start or last_epoch < self.start.epoch:
                return None, latest
        if offset == 0:
            return None, None
        end = self.end_of(last_epoch)
        if end.epoch != last_epoch or end.offset < offset:
            return end, None
        return None, None

    def truncation_for(self, diverging: OffsetAndEpoch) -> int:
        """Return the offset to truncate to, for the end of an epoch in the leader's log."""
        own = self.end_of(diverging.epoch)
        return own.offset if own.epoch < diverging.epoch else min(own.offset, diverging.offset)
