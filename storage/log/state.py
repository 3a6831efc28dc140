"""What one log is while it is open: its segments, its folder, its offsets and what it knows of producers
and epochs.

`Log` appends and reads; `log_flush` makes it durable; `log_deletion` takes records out at either end. All
three work on this, and none of the latter two knows `Log`.

Fields are written on the loop's thread. A flush in the worker of the log's directory reads them, and writes
`flushed_end_offset`, `last_flush_ms` and `leader_epochs_changed`.
"""

from __future__ import annotations

import threading

from kafka_compat.storage.clock import Clock
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.disk import Disk
from kafka_compat.storage.directories.truncations import Cuts
from kafka_compat.storage.errors import OffsetOutOfRange
from kafka_compat.storage.log.leader_epochs import LeaderEpochs
from kafka_compat.storage.log.log_folder import LogFolder
from kafka_compat.storage.log.log_segments import LogSegments
from kafka_compat.storage.log.producers import ProducerState


class LogState:
    """See the module."""

    __slots__ = (
        "_clock",
        "closed",
        "config",
        "cuts",
        "disk",
        "flushed_end_offset",
        "folder",
        "last_flush_ms",
        "latest_leader_epoch",
        "leader_epochs",
        "leader_epochs_changed",
        "log_end_offset",
        "log_start_offset",
        "name",
        "opened_end_offset",
        "position_lock",
        "producers",
        "segments",
        "truncations",
    )

    def __init__(
        self,
        *,
        name: str,
        disk: Disk,
        folder: LogFolder,
        segments: LogSegments,
        config: LogConfig,
        log_start_offset: int,
        log_end_offset: int,
        producers: ProducerState,
        leader_epochs: LeaderEpochs,
        clock: Clock,
    ) -> None:
        self.name = name
        """`topic-partition`, as messages say it."""
        self.disk = disk
        self.folder = folder
        self.segments = segments
        self.config = config
        self.producers = producers
        self.leader_epochs = leader_epochs
        self.latest_leader_epoch = leader_epochs.latest_epoch
        """The newest leader epoch that this log knows; -1 when none."""
        self.leader_epochs_changed = False
        """Whether they differ from the leader-epoch-checkpoint; the next flush stores them."""
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.flushed_end_offset = log_end_offset
        self.opened_end_offset = -1
        """Where the log ended when it was opened, if it was closed cleanly before; -1 otherwise."""
        self.last_flush_ms = clock.monotonic_ms()
        self.truncations = 0
        """How often records were taken from the end; who copies the log begins again then."""
        self.cuts = Cuts()
        """Truncations that are not on disk yet."""
        self.position_lock = threading.Lock()
        """Held for no longer than it takes to read or write offsets and the list of segments, never over
        I/O that waits.
        """
        self.closed = False
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    @property
    def is_settling(self) -> bool:
        """Whether a truncation is not on disk yet: nothing may be written until it is."""
        return self.cuts.count > 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return self.segments.size_bytes

    @property
    def first_base_offset(self) -> int:
        """Base offset of the oldest segment."""
        return self.segments.base_offsets[0]

    @property
    def is_as_closed(self) -> bool:
        """Whether its files are as a clean stop left them: nothing was written or taken out since."""
        return (
            self.log_end_offset == self.opened_end_offset
            and not self.truncations
            and not self.folder.has_changed
        )

    def epochs_changed(self) -> None:
        """Entries of `leader_epochs` came or went."""
        self.latest_leader_epoch = self.leader_epochs.latest_epoch
        self.leader_epochs_changed = True

    def advance_log_start_offset(self, offset: int) -> None:
        """Hide the records below `offset` (DeleteRecords); retention removes segments that are wholly below
        it.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(f"offset {offset} is behind the end {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.disk.log_starts_moved = True
            self.leader_epochs.truncate_from_start(offset)
            self.leader_epochs_changed = True

    def let_go(self) -> None:
        """Nothing is read or written here any more; descriptors close once no slice uses them."""
        self.closed = True
        for segment in self.segments.all:
            segment.let_go()
