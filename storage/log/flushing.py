"""Flushes of one log: the offset below which the log is durable, and how it advances.

A flush runs in the worker of the log's directory, concurrently with appends; neither waits for the other. A
flush reads the end offset and the list of segments together, and syncs the records before that end offset.
Then it advances `end_offset`, unless the log was truncated during the flush.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.log.leader_epochs import LeaderEpochs
    from kafka_compat.storage.log.log_files import LogFiles
    from kafka_compat.storage.segments.segment import Segment


class Flushing:
    """Flush state of one log: the durable end offset and the time of the last flush."""

    __slots__ = ("_clock", "_disk", "_files", "_name", "end_offset", "last_ms", "lock", "truncation_count")

    def __init__(self, name: str, disk: Disk, files: LogFiles, end_offset: int, clock: Clock) -> None:
        self.end_offset = end_offset
        """The offset below which all records are durable."""
        self.last_ms = clock.monotonic_ms()
        """The time at which the last flush ended, in ms on the monotonic clock."""
        self.truncation_count = 0
        self.lock = threading.Lock()
        """Lock held while offsets and the list of segments are accessed together, but never during I/O."""
        self._name = name
        self._disk = disk
        self._files = files
        self._clock = clock

    def is_due(self, log_end_offset: int, flush_ms: int) -> bool:
        """Whether the log has unflushed records, and its last flush ended at least `flush_ms` ago."""
        return self.end_offset < log_end_offset and self._clock.monotonic_ms() - self.last_ms >= flush_ms

    def go_back(self, offset: int) -> None:
        """Lower the durable end offset after a truncation to `offset`. The caller must hold the lock."""
        self.truncation_count += 1
        self.end_offset = min(self.end_offset, offset)
        self._disk.recovery_points_moved = True

    def flush(
        self, segments: list[Segment], end_offset: int, truncation_count: int, epochs: LeaderEpochs
    ) -> None:
        """Make all records below `end_offset` durable. `segments` (all segments of the log), `end_offset` and
        `truncation_count` must have been read at the same time. Raises LogDirFailure or RefusedForNow.
        """
        disk, files = self._disk, self._files
        if end_offset <= self.end_offset and not files.names_changed:
            return
        names_changed, files.names_changed = files.names_changed, False
        began_s = time.monotonic()
        try:
            files.sync_segments(segments, self.end_offset)
            if names_changed:
                files.sync_names()
            disk.flushes += 1
            disk.flush_times_ms.append((time.monotonic() - began_s) * 1000)
        except OSError as error:
            files.names_changed = files.names_changed or names_changed
            raise disk.fail(error, f"flush of {self._name}") from error
        if epochs.changed:
            try:
                self.store_epochs(epochs)
            except OSError as error:
                # The file is replaced atomically, so the write may be retried if the disk is merely full.
                epochs.changed = True
                files.names_changed = files.names_changed or names_changed
                raise disk.refuse(error, f"leader epochs of {self._name}") from error
        with self.lock:
            if self.truncation_count == truncation_count:
                self.end_offset = max(self.end_offset, end_offset)
                disk.recovery_points_moved = True
        self.last_ms = self._clock.monotonic_ms()

    def store_epochs(self, epochs: LeaderEpochs) -> None:
        """Write the leader-epoch-checkpoint file durably. Raises OSError."""
        # Clear the flag before the write: an epoch added during the write must be stored by the next write.
        epochs.changed = False
        self._files.store_leader_epochs(epochs)
