"""Pending truncations of a log: they are complete in memory, but not on disk.

The worker of the log's directory first lowers the checkpoints, so that recovery does not trust records beyond
the new end, and then truncates the files. Until all truncations of a log are on disk, the log is not appended
to, flushed or rolled, and retention deletes nothing from it. Reads continue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.storage.errors import NotSettled

if TYPE_CHECKING:
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.log.log_files import LogFiles
    from kafka_compat.storage.segments.segment import Segment


class Truncation:
    """The file changes of one log truncation. `run` may be called again after RefusedForNow."""

    def __init__(
        self,
        files: LogFiles,
        disk: Disk,
        removed: Sequence[Segment],
        due_ms: int,
        *,
        kept: Segment | None = None,
        end_offset: int = -1,
        created: Segment | None = None,
    ) -> None:
        """`removed` contains the segments taken out of the log, oldest first. The log's new last segment is
        `kept`, truncated in memory to end at `end_offset`, or `created`, whose file does not exist yet.
        """
        self.pending: Truncations | None = None
        self._files = files
        self._disk = disk
        self._removed = removed
        self._due_ms = due_ms
        self._kept = kept
        self._kept_bytes = kept.size_bytes if kept is not None else 0
        self._end_offset = end_offset
        self._created = created

    def run(self) -> None:
        """Truncate the files durably. Raises LogDirFailure, or RefusedForNow if a retry is possible."""
        files = self._files
        try:
            files.retire(self._removed[::-1], self._due_ms)
            if self._created is not None:
                files.remove_snapshots_behind(-1)
                self._created.create()
                if self._created.deleted:
                    # Skip a segment that a later truncation has already removed.
                    self._created.abandon()
            files.sync_directory()
            if self._kept is not None and not self._kept.deleted:
                # Truncate durably before the next append: otherwise, after a crash, old batches could follow
                # the new batches.
                self._kept.cut_files(self._kept_bytes)
                files.remove_snapshots_behind(self._end_offset)
        except OSError as error:
            # Ignore the error if the log has since been removed, because its files are no longer needed.
            if not any(segment is not None and segment.deleted for segment in (self._kept, self._created)):
                raise self._disk.refuse(error, f"truncation in {files.path}") from error

    def done(self) -> None:
        """Record that the truncation is on disk. Call this on the event loop."""
        if self.pending is not None:
            self.pending.done()


TakeTruncation = Callable[[object, Truncation], None]


class Truncations:
    """The truncations of one log that are not on disk yet."""

    __slots__ = ("_take", "_waiters", "count")

    def __init__(self) -> None:
        self.count = 0
        self._take: TakeTruncation | None = None
        self._waiters: tuple[Callable[[], None], ...] = ()

    def follow(self, take: TakeTruncation) -> None:
        """Call `take` with the log and the truncation at each later `add`. `take` passes the truncation to
        the worker, which later calls its `done`. If `follow` is not called, truncations run immediately.
        """
        self._take = take

    def add(self, log: object, truncation: Truncation) -> None:
        """Start a truncation of `log`. Raises the same errors as `Truncation.run` if `follow` was not called.

        `log` is a parameter rather than an attribute: if a log and its truncations referred to each other,
        only the garbage collector would free a deleted log.
        """
        if self._take is None:
            truncation.run()
            return
        self.count += 1
        truncation.pending = self
        self.take(log, truncation)

    def take(self, log: object, truncation: Truncation) -> None:
        """Pass a pending truncation to the function registered by `follow`."""
        assert self._take is not None
        self._take(log, truncation)

    def done(self) -> None:
        """Record that a truncation is on disk."""
        if not self.count:
            return  # `all_done` has already counted this truncation.
        self.count -= 1
        if not self.count:
            waiters, self._waiters = self._waiters, ()
            for waiter in waiters:
                waiter()

    def all_done(self) -> None:
        """Record all truncations as done, because the disk has failed or the worker has ended."""
        while self.count:
            self.done()

    def when_none(self, callback: Callable[[], None]) -> None:
        """Call `callback` once no truncation is pending."""
        if self.count:
            self._waiters = (*self._waiters, callback)
        else:
            callback()

    def check(self, name: str) -> None:
        """Raise NotSettled if a truncation is pending."""
        if self.count:
            raise NotSettled(f"the truncation of {name} is not on disk yet")
