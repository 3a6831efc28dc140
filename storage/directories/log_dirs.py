"""All log directories of a broker: their logs, and the choice of directory for a new log.

A directory is used by one process at a time (`.lock`) and belongs permanently to one broker ID and cluster
(`meta.properties`). The marker `.kafka_cleanshutdown` indicates that every log in the directory was closed;
it is removed before the first write. A directory that fails goes offline with its logs; the other directories
remain in service.

`log_directory` describes when changes become durable, and `log_moves` how logs move between directories.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kafka_compat.storage import errors
from kafka_compat.storage.directories.directory_names import DELETE_SUFFIX, STRAY_SUFFIX
from kafka_compat.storage.directories.found_logs import FoundLogs, find_logs, on_threads
from kafka_compat.storage.directories.log_directory import LogDirectory
from kafka_compat.storage.directories.log_moves import LogMoves
from kafka_compat.storage.filesystem import Filesystem, RealFilesystem
from kafka_compat.storage.segments.open_segments import OpenSegments, SparingFilesystem

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.directories.directory_worker import Done, Worker
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.log.log import Log
    from kafka_compat.storage.log.recovery import RecoveryProgress

logger = logging.getLogger(__name__)

PREFERRED_MAX = 10_000
"""Maximum number of preferred directories stored for future logs. The oldest preference is dropped first."""

T = TypeVar("T")


class LoadReport:
    """Report on the log directories and logs opened by `LogDirs.load`."""

    def __init__(self) -> None:
        self.clean = True
        """Whether every directory was shut down cleanly."""
        self.log_count = 0
        self.recovered_bytes = 0
        """Number of bytes that were read and checked by recovery."""
        self.truncated: dict[TopicPartition, int] = {}
        """Number of bytes removed after the last valid batch of each log."""
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.offline: list[str] = []


class LogDirs:
    """All logs of one broker. `logs` contains the online logs, and `directories` the configured paths.

    `on_failure` is called with the path and the partitions of a directory that goes offline, after its logs
    are removed from `logs`.
    """

    def __init__(
        self,
        directories: Sequence[str],
        *,
        broker_id: int = -1,
        cluster_id: str = "",
        clock: Clock,
        config_for: Callable[[str], LogConfig],
        filesystem: Filesystem | None = None,
        on_failure: Callable[[str, list[TopicPartition]], None] | None = None,
        new_worker: Callable[[str], Worker] | None = None,
    ) -> None:
        """`new_worker` creates the worker for the directory at the given path. Without it, disk operations
        run synchronously.
        """
        self.logs: dict[TopicPartition, Log] = {}
        open_segments = OpenSegments()
        self.spare_descriptors = open_segments.spare_all_but
        self._filesystem: Filesystem = SparingFilesystem(filesystem or RealFilesystem(), open_segments.spare)
        self.clean_offsets: dict[TopicPartition, int] = {}
        """The offsets up to which logs have been compacted."""
        self._preferred: dict[TopicPartition, str] = {}
        self._broker_id = broker_id
        self._cluster_id = cluster_id
        self._config_for = config_for
        self._on_failure = on_failure
        self._failed: set[str] = set()
        self._directories = {
            path: LogDirectory(
                path,
                self._filesystem,
                open_segments,
                clock,
                self.clean_offsets,
                self._directory_failed,
                new_worker(path) if new_worker is not None else None,
            )
            for path in dict.fromkeys(os.path.abspath(directory) for directory in directories)
        }
        self.moves = LogMoves(self._directories, self.logs, config_for, clock.monotonic_ms)

    @property
    def directories(self) -> list[str]:
        return list(self._directories)

    @property
    def futures(self) -> Mapping[TopicPartition, Log]:
        """The copies that will replace logs after moves between directories."""
        return self.moves.futures

    @property
    def disks(self) -> list[Disk]:
        """The `Disk` objects of all directories."""
        return [directory.disk for directory in self._directories.values()]

    @property
    def offline(self) -> set[str]:
        """The paths of the directories that have failed."""
        return {path for path, directory in self._directories.items() if not directory.online}

    @property
    def failures(self) -> list[errors.LogDirFailure]:
        """The errors of the offline directories."""
        return [disk.failure for disk in self.disks if disk.failure is not None]

    # --- startup

    def lock(self) -> None:
        """Lock the directories for this process. `load` also locks them.

        Raises LogDirInUse if a directory is already locked, or OutOfResources.
        """
        try:
            for directory in self._directories.values():
                self._guarded(directory, "open", directory.claim.lock)
        except errors.LogDirInUse:
            self.unlock()
            raise

    def unlock(self) -> None:
        """Release the locks on the directories. `close` also releases them."""
        for directory in self._directories.values():
            directory.claim.unlock()

    def identify(self, broker_id: int, cluster_id: str) -> None:
        """Set the owner of the directories, if it was unknown when they were locked."""
        self._broker_id = broker_id
        self._cluster_id = cluster_id

    def load(self, progress: RecoveryProgress | None = None, *, keep_gaps: bool = False) -> LoadReport:
        """Lock the directories, check their owner, and open every log in them. `progress` may be called from
        any thread. Set `keep_gaps` if the topics' settings are unknown, so that gaps between offsets are
        attributed to compaction.

        Raises LogDirInUse, InconsistentMetaProperties, OutOfResources, or LogDirFailure if all directories
        have failed. Nothing is changed before the ownership of all directories is verified.
        """
        report = LoadReport()
        self.lock()
        ours = (self._broker_id, self._cluster_id)
        try:
            checked = [
                (d, self._guarded(d, "meta.properties", d.claim.is_new, *ours)) for d in self._online()
            ]
            for directory, is_new in checked:
                if is_new:
                    self._guarded(directory, "meta.properties", directory.claim.mark, *ours)
        except BaseException:
            self.unlock()
            raise
        found: dict[LogDirectory, FoundLogs] = {}
        for directory in self._online():
            contents = self._guarded(
                directory,
                "load",
                find_logs,
                directory,
                self._filesystem,
                self._config_for,
                keep_gaps,
                progress,
            )
            if contents is not None:
                report.recovered_bytes += contents.recovered_bytes
                report.truncated.update(contents.truncated)
                self._take(directory, contents, found)
                found[directory] = contents
        for directory, contents in found.items():
            report.high_watermarks.update(
                (key, offset) for key, offset in contents.high_watermarks.items() if key in directory.logs
            )
            report.clean = report.clean and (contents.clean or not directory.logs)
            self._guarded(directory, "load", directory.begin, contents.clean)
        for directory, contents in found.items():
            for log in contents.duplicates:
                self._guarded(directory, "load", self._set_duplicate_aside, directory, log)
        report.offline = sorted(self.offline)
        for directory in self._directories.values():
            if not directory.online:
                self._directory_failed(directory)
        if not self._online():
            raise errors.LogDirFailure(f"every log directory is offline: {', '.join(report.offline)}")
        report.log_count = len(self.logs)
        return report

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories.values() if directory.online]

    def _guarded(
        self, directory: LogDirectory, doing: str, action: Callable[..., T], *arguments: object
    ) -> T | None:
        """Run `action` for one directory, and return its result, or None after a disk error. An OSError takes
        the directory offline, or is raised as OutOfResources. DiskFull leaves the directory online.
        """
        try:
            return action(*arguments)
        except OSError as error:
            failure = directory.disk.fail(error, doing)
            if isinstance(failure, errors.OutOfResources):
                raise failure from error
        except (errors.LogDirFailure, errors.DiskFull):
            pass
        return None

    def _take(
        self, directory: LogDirectory, contents: FoundLogs, before: Mapping[LogDirectory, FoundLogs]
    ) -> None:
        """Add the logs found in a directory. If a crash during a move left two logs of the same partition,
        keep the longer one.
        """
        for key, log in contents.logs.items():
            other = self.logs.get(key)
            if other is not None:
                start_offset = max(log.log_start_offset, other.log_start_offset)
                if log.log_end_offset <= other.log_end_offset:
                    contents.duplicates.append(log)
                    other.advance_log_start_offset(min(start_offset, other.log_end_offset))
                    continue
                log.advance_log_start_offset(min(start_offset, log.log_end_offset))
                holder = self._directories[other.disk.path]
                before[holder].duplicates.append(other)
                del holder.logs[key]
            directory.adopt(key, log)
            self.logs[key] = log
            if key in contents.cleaned:
                self.clean_offsets[key] = min(contents.cleaned[key], log.log_end_offset)
        for key, future in contents.futures.items():
            self.moves.resume(key, future)

    def _set_duplicate_aside(self, directory: LogDirectory, log: Log) -> None:
        path = directory.set_aside_at_start(log, STRAY_SUFFIX)
        logger.warning(
            "Renamed the directory of %s-%d to %s: another log directory contains a longer copy",
            log.topic,
            log.partition,
            path,
        )

    # --- creation and deletion

    def prefer(self, topic: str, partition: int, directory: str) -> None:
        """Set the preferred directory for a future log (KIP-113). `create` ignores an offline directory."""
        while len(self._preferred) >= PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic, partition] = directory

    def create(self, topic: str, partition: int, topic_id: UUID) -> Log:
        """Create an empty log in its preferred directory, or in the directory with free space that has the
        fewest logs. The first flush makes the log durable.

        Raises LogDirFailure if no directory is online, RefusedForNow if space or descriptors are exhausted or
        an earlier log with the same name is not deleted yet (see `when_ready`), or DirectoryExists.
        """
        key = (topic, partition)
        if key in self.logs:
            return self.logs[key]
        preferred = self._preferred.pop(key, None)
        candidates = self._online()
        if len(candidates) > 1:
            candidates.sort(key=lambda candidate: (candidate.path != preferred, len(candidate.logs)))
        refusal: Exception = errors.LogDirFailure("every log directory is offline")
        for directory in candidates:
            try:
                log = directory.create(key, topic_id, self._config_for(topic))
            except (errors.DiskFull, errors.DirectoryExists) as error:
                refusal = error
                continue
            self.logs[key] = log
            return log
        raise refusal

    def fork(self, source: TopicPartition, key: TopicPartition, topic_id: UUID) -> Log:
        """Create a log with the current records of `source`. The two logs share closed segments in the same
        log directory (`log.fork`). Both partitions must be ready. Raises LogDirFailure, RefusedForNow or
        DirectoryExists.
        """
        log = self.logs[source]
        forked = self._directories[log.disk.path].fork(log, key, topic_id, self._config_for(key[0]))
        self.logs[key] = forked
        if source in self.clean_offsets:
            self.clean_offsets[key] = self.clean_offsets[source]
        return forked

    def is_ready(self, key: TopicPartition) -> bool:
        """Whether the partition may be created or written to, because no disk operation is pending for it."""
        log = self.logs.get(key)
        if log is not None:
            return not log.is_settling
        return all(directory.is_free(key) for directory in self._directories.values() if directory.online)

    def when_ready(self, key: TopicPartition, done: Done) -> None:
        """Call `done` with None when `is_ready` may have become true, or with the error that prevents it."""
        log = self.logs.get(key)
        if log is not None:
            log.truncations.when_none(lambda: done(None))
            return
        for directory in self._online():
            if not directory.is_free(key):
                directory.when_free(key, done)
                return
        done(None)

    def delete(self, topic: str, partition: int, done: Done | None = None) -> None:
        """Delete a log: rename its directory, call `done`, and later delete its files."""
        key = (topic, partition)
        self.moves.cancel(key)
        log = self._release(key)
        self._directories[log.disk.path].remove(log, DELETE_SUFFIX, log.file_deletion_ms(), done)

    def set_aside(self, topic: str, partition: int) -> str:
        """Rename the directory of a log, keeping its files for inspection, and return the new path."""
        log = self._release((topic, partition))
        return self._directories[log.disk.path].remove(log, STRAY_SUFFIX, None)

    def _release(self, key: TopicPartition) -> Log:
        log = self.logs.pop(key)
        self.clean_offsets.pop(key, None)
        self._directories[log.disk.path].release(key)
        return log

    def update_config(self, topic: str) -> None:
        """Apply the current settings of a topic to all of its logs."""
        config = self._config_for(topic)
        for (name, _), log in [*self.logs.items(), *self.futures.items()]:
            if name == topic:
                log.update_config(config)

    # --- periodic work

    def tick(self, now_ms: int) -> None:
        """Delete the files and partition directories whose deletion is due, and retry failed operations."""
        self.moves.tick()
        for directory in self._online():
            directory.tick(now_ms)

    def store_log_starts(self, path: str, done: Done) -> None:
        """Call `done` with None when the directory's log start offsets are durable, or with an error."""
        self._directories[path].store_log_starts(done)

    def when_idle(self, path: str, done: Done) -> None:
        """Call `done` when the directory has completed all operations requested so far."""
        self._directories[path].when_idle(done)

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery points, the offsets at which a recovery starts."""
        for directory in self._online():
            directory.store_recovery_points()

    def checkpoint_log_start_offsets(self) -> None:
        """Write the changed log start offsets, so that a restart does not undo DeleteRecords or retention."""
        for directory in self._online():
            if directory.disk.log_starts_moved:
                directory.store_log_starts(lambda _: None)

    def checkpoint_high_watermarks(self, moved: Mapping[TopicPartition, int]) -> None:
        """Write the changed high watermarks, `moved`, which the caller must not modify afterwards."""
        for directory in self._online():
            directory.store_high_watermarks(moved)

    def checkpoint_clean_offsets(self, flush_before: Log | None = None) -> None:
        """Write the clean offsets. With `flush_before`, flush that log first, and write only its directory's
        offsets.
        """
        for directory in self._online():
            is_its = flush_before is not None and flush_before.disk is directory.disk
            if flush_before is None or is_its:
                directory.store_clean_offsets(flush_before)

    def _directory_failed(self, directory: LogDirectory) -> None:
        if directory.path in self._failed:
            return
        self._failed.add(directory.path)
        lost = [key for key, log in self.logs.items() if log.disk is directory.disk]
        for key in lost:
            del self.logs[key]
        directory.fail_waiters()
        self.moves.forget(directory)
        if self._on_failure is not None:
            self._on_failure(directory.path, lost)

    # --- shutdown

    def abandon(self) -> None:
        """Close every log without a flush and release the locks, because the data is no longer needed."""
        for directory in self._directories.values():
            directory.worker.close()
            for log in directory.logs.values():
                log.abandon()
        self.unlock()

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Flush and close all logs, write the checkpoints and clean-shutdown markers, and unlock."""
        for directory in self._directories.values():
            directory.worker.close()
        for directory in self._online():
            self._guarded(directory, "close", self._close_directory, directory, high_watermarks or {})
        self.unlock()

    def _close_directory(
        self, directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        try:
            directory.settle_at_end()
        except errors.RefusedForNow as error:
            logger.warning("Could not close log directory %s cleanly: %s", directory.path, error)
            return
        futures = [log for log in self.futures.values() if log.disk is directory.disk]
        changed = []
        for log in (*directory.logs.values(), *futures):
            if log.is_as_closed:
                log.close()
            else:
                changed.append(log)
        on_threads(lambda log: log.close(), changed, waits=True)
        directory.finish(high_watermarks)
