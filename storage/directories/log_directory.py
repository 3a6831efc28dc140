"""One log directory: its lock, checkpoints and logs, and the worker that updates the disk.

Changes to a log are decided on the event loop and take effect in memory at once; the worker then updates the
disk. The loop never calls fsync and never waits for one. The loop writes records and their indexes (into the
page cache) and the worker syncs them. Only the worker writes checkpoints, renames partition directories and
rewrites files after a truncation.

Crash consistency: after kill -9 at any moment, and after a power cut that keeps only synced data, startup
finds a state in which the following rules hold.

1. A checkpoint entry never refers to a log other than the one in its partition directory. For a deletion, the
   worker renames the partition directory, syncs the log directory, and only then rewrites the checkpoints
   without the entry. Until the checkpoints are durable (`is_free`), no log with that name is created here. A
   crash in between leaves entries without a partition directory; the next startup removes these entries
   before it creates a log. Every checkpoint is generated from, or filtered by, the logs that exist when it is
   written, and the worker runs its jobs in order.
2. A deletion is acknowledged (`done`) when the new name of the partition directory is durable, so that the
   log cannot reappear.
3. Recovery starts no later than the first byte that may not be durable. Before a truncation changes a file of
   the log, recovery points, log starts and clean offsets beyond the new end are lowered durably. Nothing is
   appended to the log until its files are truncated durably (see `log.truncations`). One checkpoint write
   serves all waiting truncations. A flush during which the log was truncated does not raise the recovery
   point.
4. An acknowledged log start (`store_log_starts`) is durable; Apache Kafka writes log starts once a minute.
   After recovery, the log start is never beyond the log end.
5. A checkpoint is replaced atomically with a temporary file, which has a unique name. Startup removes
   temporary files that a crash left.

Operations that fail because the disk is full or descriptors are exhausted are retried at each `tick`; waiting
callers get the error at once. Any other disk error takes the directory offline.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from kafka_compat.storage.directories import checkpoints, log_summaries
from kafka_compat.storage.directories.deletions import Deletions
from kafka_compat.storage.directories.directory_claim import DirectoryClaim
from kafka_compat.storage.directories.directory_names import DELETE_SUFFIX, directory_name, unique_name
from kafka_compat.storage.directories.directory_removals import DirectoryRemovals
from kafka_compat.storage.directories.directory_worker import Done, InlineWorker, Worker, log_failure, run
from kafka_compat.storage.directories.disk import Disk
from kafka_compat.storage.directories.machine_crash import BOOT_MARKER, mark_boot
from kafka_compat.storage.directories.offset_checkpoints import OffsetCheckpoints
from kafka_compat.storage.errors import DirectoryExists, NotSettled, RefusedForNow, StorageError
from kafka_compat.storage.filesystem import Filesystem, is_temporary

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.log.loader import LogLoader
    from kafka_compat.storage.log.log import Log
    from kafka_compat.storage.log.truncations import Truncation
    from kafka_compat.storage.segments.open_segments import OpenSegments

logger = logging.getLogger(__name__)

_REPLACED = (
    *checkpoints.OFFSETS,
    checkpoints.META_PROPERTIES,
    checkpoints.CLEAN_SHUTDOWN,
    BOOT_MARKER,
    log_summaries.LOG_SUMMARIES,
)


class _PendingTruncation:
    """A truncation that has not been applied to the files. In memory, the log already ends at `offset`."""

    def __init__(self, key: TopicPartition, log: Log, offset: int, truncation: Truncation) -> None:
        self.key = key
        self.log = log
        self.offset = offset
        self.truncation = truncation


class LogDirectory:
    """One log directory. Call its methods on the event loop unless stated otherwise."""

    def __init__(
        self,
        path: str,
        filesystem: Filesystem,
        open_segments: OpenSegments,
        clock: Clock,
        clean_offsets: dict[TopicPartition, int],
        on_failure: Callable[[LogDirectory], None],
        worker: Worker | None = None,
    ) -> None:
        """`clean_offsets` covers all directories. If the disk fails, `on_failure` is called on the loop."""
        self.path = path
        self.worker: Worker = worker if worker is not None else InlineWorker()
        self.disk = Disk(path, lambda _: self.worker.hand_back(lambda: on_failure(self)), self.worker)
        self.logs: dict[TopicPartition, Log] = {}
        self.checkpoints = OffsetCheckpoints(filesystem, self.disk, self.logs, clean_offsets)
        self.deletions = Deletions(filesystem)
        self._filesystem = filesystem
        self._open_segments = open_segments
        self._clock = clock
        self._clean_offsets = clean_offsets
        self.claim = DirectoryClaim(path, filesystem)
        self._removals = DirectoryRemovals(
            filesystem, self.disk, self.checkpoints, self.deletions, self.worker
        )
        self._truncations: deque[_PendingTruncation] = deque()
        # Share one bound method among all logs, because each access to a method creates a new object.
        self._take_truncation = self._on_truncation
        self._settle_submitted = False
        self._removes_files = False
        self._newest: Log | None = None
        """The log that was created last, if it still exists."""
        self._log_start_waiters: deque[Done] = deque()
        self._release_waiters: dict[TopicPartition, list[Done]] = {}
        """Callbacks for partitions whose logs were moved to a different directory but are not removed yet."""

    @property
    def online(self) -> bool:
        return self.disk.failure is None

    @cached_property
    def loader(self) -> LogLoader:
        """The loader of this directory's logs. A broker without partitions does not import it."""
        from kafka_compat.storage.log.loader import LogLoader

        return LogLoader(self._filesystem, self._open_segments, self.deletions, self._clock)

    # --- startup and shutdown, without the worker because nothing else runs

    def begin(self, clean: bool) -> None:
        """Reconcile the checkpoints with the loaded logs, and remove the clean-shutdown marker. Raises
        OSError or StorageError if a write fails.
        """
        filesystem = self._filesystem
        for name in filesystem.listdir(self.path):
            if is_temporary(name) and any(is_temporary(name, of) for of in _REPLACED):
                filesystem.unlink(f"{self.path}/{name}")
        mark_boot(filesystem, self.path)
        self.checkpoints.keep(self.logs)
        if clean:
            # Remove the marker durably before the first append, or logs would seem clean after a crash.
            filesystem.unlink(f"{self.path}/{checkpoints.CLEAN_SHUTDOWN}")
            filesystem.sync_directory(self.path)
        else:
            self.checkpoints.write_recovery_points()

    def set_aside_at_start(self, log: Log, ending: str) -> str:
        """Rename the directory of a log that is not in `logs`, and return the new path. Raises OSError."""
        target = f"{self.path}/{unique_name((log.topic, log.partition), ending)}"
        log.abandon()
        self._filesystem.rename(log.directory, target)
        self._filesystem.sync_directory(self.path)
        return target

    def finish(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the checkpoints and then the clean-shutdown marker, after the logs are closed. Raises
        OSError or StorageError if a write fails.
        """
        self.checkpoints.write_recovery_points()
        self.checkpoints.write_log_start_offsets()
        self.checkpoints.write_high_watermarks(high_watermarks)
        self._filesystem.write_file_atomically(
            f"{self.path}/{log_summaries.LOG_SUMMARIES}", log_summaries.encode(self._summaries())
        )
        self._filesystem.write_file_atomically(
            f"{self.path}/{checkpoints.CLEAN_SHUTDOWN}", checkpoints.encode_clean_shutdown()
        )

    def _summaries(self) -> Iterator[str]:
        """Iterate over the summaries of all logs without pending file deletions or missing files."""
        unsettled = self.deletions.directories()
        for key, log in self.logs.items():
            if log.directory not in unsettled:
                with contextlib.suppress(FileNotFoundError):
                    yield log_summaries.encode_line(key, log_summaries.summarize(log))

    def settle_at_end(self) -> None:
        """Retry unfinished truncations and removals. Raises RefusedForNow if a truncation fails again."""
        error = run(self._settle)
        if error is not None:
            raise error
        if self._truncations:
            raise RefusedForNow(f"a truncation in {self.path} is not on disk yet")
        for log in self.logs.values():
            log.truncations.all_done()

    # --- creation and deletion of logs

    def create(self, key: TopicPartition, topic_id: UUID, config: LogConfig) -> Log:
        """Create an empty log. Its first flush makes it durable. Raises LogDirFailure, DirectoryExists or
        RefusedForNow (NotSettled if `is_free` is false).
        """
        self._check_settled(key)
        newest = self._newest
        sibling = newest if newest is not None and newest.topic_id == topic_id else None
        log = self.create_at(key, f"{self.path}/{directory_name(key)}", topic_id, config, sibling)
        self.adopt(key, log)
        self._newest = log
        return log

    def create_at(
        self,
        key: TopicPartition,
        path: str,
        topic_id: UUID | None,
        config: LogConfig,
        sibling: Log | None = None,
    ) -> Log:
        """Create an empty log at `path`, without checkpoint entries. Raises the same errors as `create`.
        `sibling` is another log of the topic, if one is known.
        """
        self.disk.check()
        self._check_vacant(path)
        try:
            return self.loader.create(self.disk, path, key, topic_id, config, sibling)
        except (OSError, RefusedForNow) as error:
            leftover = f"{self.path}/{unique_name(key, DELETE_SUFFIX)}"
            with contextlib.suppress(OSError):
                # Rename now and delete later: deletion needs a descriptor, and none may be available.
                self._filesystem.rename(path, leftover)
                self.deletions.schedule(leftover, 0)
            if isinstance(error, RefusedForNow):
                raise
            raise self.disk.refuse(error, f"create {path}") from error

    def fork(self, source: Log, key: TopicPartition, topic_id: UUID, config: LogConfig) -> Log:
        """Create a log with the current records of `source`, a log in this directory. The first flush makes
        the new log durable. Raises the same errors as `create`.
        """
        from kafka_compat.storage.log.fork import become_new_topic, write_fork

        path = f"{self.path}/{directory_name(key)}"
        self.disk.check()
        self._check_settled(key)
        self._check_vacant(path)
        # If the broker crashes, the next startup removes an unfinished directory with this name.
        building = f"{self.path}/{unique_name(key, DELETE_SUFFIX)}"
        try:
            write_fork(source, building, self._filesystem, is_new_topic=True)
            self._filesystem.rename(building, path)
            start_offset = source.log_start_offset
            log = self.loader.load(
                self.disk, path, key, config, recovery_point=0, log_start_offset=start_offset, clean=True
            ).log
            become_new_topic(log, topic_id)
        except OSError as error:
            self.deletions.schedule(building, 0)
            raise self.disk.refuse(error, f"fork of {source.name} to {path}") from error
        self.adopt(key, log)
        return log

    def _check_settled(self, key: TopicPartition) -> None:
        if not self.is_free(key):
            raise NotSettled(f"the deletion of an earlier {directory_name(key)} is not on disk yet")

    def _check_vacant(self, path: str) -> None:
        if self._filesystem.exists(path):
            raise DirectoryExists(f"{path} exists but is not a log of this broker: move it away")

    def adopt(self, key: TopicPartition, log: Log) -> None:
        """Add `log` to this directory and its checkpoints."""
        self.follow_truncations(log)
        self.logs[key] = log
        self.disk.recovery_points_moved = self.disk.log_starts_moved = True

    def follow_truncations(self, log: Log) -> None:
        """Let the worker apply truncations of a log to the log's files."""
        log.truncations.follow(self._take_truncation)

    def _on_truncation(self, log: object, truncation: Truncation) -> None:
        from kafka_compat.storage.log.log import Log

        assert isinstance(log, Log)
        key = log.topic, log.partition
        offset = log.log_end_offset
        if self._clean_offsets.get(key, -1) > offset and self.logs.get(key) is log:
            # Lower the clean offset, because the records that replace the truncated ones are not clean.
            self._clean_offsets[key] = min(log.segments.active.base_offset, offset)
        self._truncations.append(_PendingTruncation(key, log, offset, truncation))
        self._submit_settle()

    def release(self, key: TopicPartition) -> None:
        """Remove the log from `logs` but keep its directory. The caller must call `remove` immediately."""
        self.checkpoints.leaving.add(key)
        if self.logs.pop(key) is self._newest:
            self._newest = None

    def remove(self, log: Log, ending: str, due_ms: int | None, done: Done | None = None) -> str:
        """Close a log, rename its partition directory, and return the new path. The files are deleted at
        `due_ms` on the monotonic clock, or kept if `due_ms` is None. `done` is called when the new name is
        durable, or at the first error.
        """
        key = (log.topic, log.partition)
        log.abandon()
        target = f"{self.path}/{unique_name(key, ending)}"
        self._removals.add(key, log.directory, target, due_ms, done)
        if key not in self.logs:
            for waiter in self._release_waiters.pop(key, ()):
                self._removals.when_free(key, waiter)
        self._submit_settle()
        return target

    def rename_copy(self, key: TopicPartition, copy: Log, path: str, config: LogConfig) -> Log:
        """Close a copy, rename its partition directory to `path`, and reopen it there. Runs in the worker.
        Raises the same errors as `create`. After an error, the copy may be closed and already renamed.
        """
        self._check_vacant(path)
        copy.close()
        try:
            self._filesystem.rename(copy.directory, path)
            copy.files.path = path
            self._filesystem.sync_directory(self.path)
            return self.loader.load(
                self.disk,
                path,
                key,
                config,
                recovery_point=copy.log_end_offset,
                log_start_offset=copy.log_start_offset,
                clean=True,
            ).log
        except OSError as error:
            raise self.disk.refuse(error, f"move to {path}") from error

    def make_durable(self, log: Log, done: Done) -> None:
        """Make a log and its checkpoint entries durable, and then call `done`."""

        def work() -> None:
            log.flush()
            self.checkpoints.write_recovery_points()
            self.checkpoints.write_log_start_offsets()
            self.checkpoints.write_clean_offsets()

        self.worker.submit(work, done)

    def when_idle(self, done: Done) -> None:
        """Call `done` when all operations requested so far are complete."""
        self.worker.submit(lambda: None, done)

    def is_free(self, key: TopicPartition) -> bool:
        """Whether no log, pending removal or checkpoint entry in this directory refers to the partition."""
        return key not in self.logs and self._removals.is_free(key)

    def when_free(self, key: TopicPartition, done: Done) -> None:
        """Call `done` with None once `is_free` is true, or with the error that prevents it."""
        if key in self.logs:
            self._release_waiters.setdefault(key, []).append(done)
        elif self._removals.is_free(key):
            done(None)
        else:
            self._removals.when_free(key, done)
            self._submit_settle()

    def fail_waiters(self) -> None:
        """Call all waiting callbacks with the error of the failed disk."""
        self.logs.clear()
        self._newest = None
        for item in list(self._truncations):
            item.log.truncations.all_done()
        self._removals.give_up(self.disk.failure)
        for waiters in self._release_waiters.values():
            for waiter in waiters:
                waiter(self.disk.failure)
        self._release_waiters.clear()

    # --- worker jobs that make decisions durable

    def _submit_settle(self) -> None:
        if not self._settle_submitted:
            self._settle_submitted = True
            self.worker.submit(self._settle, _logged)

    def _settle(self) -> Iterator[None]:
        # Clear the flag first, so that a truncation that arrives during this job submits a new job.
        self._settle_submitted = False
        try:
            yield from self._settle_truncations()
        except RefusedForNow as error:
            logger.warning("Could not finish a truncation: %s; retrying", error)
        try:
            yield from self._removals.settle()
        except RefusedForNow as error:
            logger.warning("Could not finish a deletion: %s; retrying", error)

    def _settle_truncations(self) -> Iterator[None]:
        waiting = list(self._truncations)
        if any(self.checkpoints.exceeds(item.key, item.offset) for item in waiting):
            self.checkpoints.write_recovery_points()
            self.checkpoints.write_log_start_offsets()
            self.checkpoints.write_clean_offsets()
            yield
        for item in waiting:
            self.disk.check()
            # Skip deleted logs, because their files are no longer needed.
            if not item.log.closed:
                item.truncation.run()
            self._truncations.popleft()
            self.worker.hand_back(item.truncation.done)
            yield

    # --- checkpoints, written in the worker

    def store_log_starts(self, done: Done) -> None:
        """Call `done` with None when the current log start offsets are durable, or with an error. One write
        serves all requests that arrive before it begins.
        """
        self._log_start_waiters.append(done)
        if len(self._log_start_waiters) == 1:
            self.worker.submit(self._store_log_starts)

    def _store_log_starts(self) -> None:
        waiters: list[Done] = []
        while self._log_start_waiters:
            waiters.append(self._log_start_waiters.popleft())
        failure: Exception | None = None
        try:
            self.checkpoints.write_log_start_offsets()
        except StorageError as error:
            failure = error

        def call_back() -> None:
            for waiter in waiters:
                waiter(failure)

        self.worker.hand_back(call_back)

    def store_recovery_points(self) -> None:
        """Write the checkpoint of the recovery points if any of them has changed."""
        if self.disk.recovery_points_moved:
            self._submit(self.checkpoints.write_recovery_points)

    def store_clean_offsets(self, flush_before: Log | None = None) -> None:
        """Write the checkpoint of the clean offsets. If `flush_before` is not None, flush that log first."""

        def store() -> None:
            if flush_before is not None:
                flush_before.flush()
            self.checkpoints.write_clean_offsets()

        self._submit(store)

    def store_high_watermarks(self, moved: Mapping[TopicPartition, int]) -> None:
        """Write the changed high watermarks, `moved`, which the caller must not modify afterwards."""
        self._submit(lambda: self.checkpoints.update_high_watermarks(moved))

    def tick(self, now_ms: int) -> None:
        """Delete files and directories that are due, and retry unfinished truncations and removals."""
        if self._truncations or self._removals.is_waited_for:
            self._submit_settle()
        if not self._removes_files:
            self._remove_files(now_ms)

    def _remove_files(self, now_ms: int) -> None:
        """Delete due files in several jobs, so that other jobs do not wait until thousands are deleted."""

        def done(error: Exception | None) -> None:
            _logged(error)
            self._removes_files = False
            if self.deletions.has_more:
                self._remove_files(now_ms)

        self._removes_files = True
        self.worker.submit(lambda: self.deletions.run(now_ms), done)

    def _submit(self, write: Callable[[], None]) -> None:
        if self.online:
            self.worker.submit(write, _logged)


def _logged(error: Exception | None) -> None:
    """Log an error, unless it is a StorageError, which `disk` has already logged."""
    if error is not None and not isinstance(error, StorageError):
        log_failure(error)
