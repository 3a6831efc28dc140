"""The log directories of a broker: which logs they hold, and what keeps them safe.

A directory belongs to one broker at a time (`.lock`) and to one broker id and cluster for good
(`meta.properties`). The marker `.kafka_cleanshutdown` says that every log in it was closed; it is taken away
before the first write. A directory that fails goes offline with its logs, and the others go on.

A log moves to another directory as a copy in a folder named NAME.…-future, which takes the log's place once
it holds the same. A crash between the two renames leaves two whole folders, of which the longer is kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID, uuid4

from storage import checkpoints
from storage.checkpoints import TopicPartition
from storage.config import LogConfig
from storage.deletions import Deletions, remove
from storage.disk import Disk
from storage.errors import CorruptFile, DiskFull, InconsistentMetaProperties, LogDirFailure, LogDirInUse
from storage.filesystem import FileLock, Filesystem, RealFilesystem
from storage.loader import LoadedLog, LogLoader, RecoveryProgress
from storage.log import Log

logger = logging.getLogger(__name__)

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
NAME_BYTES_MAX = 255
PREFERRED_MAX = 10_000
"""Directories that are remembered for logs to come; beyond, the oldest are forgotten."""

THREADS = 16
"""For what waits for the disk at start and stop; fewer logs than this are done one after the other."""

S = TypeVar("S")
T = TypeVar("T")


@dataclass
class LoadReport:
    """What `LogDirs.load` found."""

    clean: bool = True
    """Whether every directory had been closed cleanly."""
    log_count: int = 0
    recovered_bytes: int = 0
    """Bytes read and checked."""
    truncated: dict[TopicPartition, int] = field(default_factory=dict)
    """Bytes cut off behind the last whole batch."""
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    offline: list[str] = field(default_factory=list)


class LogDirectory:
    """One folder of log.dirs. Its marker and checkpoints are written by `LogDirs`."""

    def __init__(self, path: str, filesystem: Filesystem, on_failure: Callable[[Disk], None]) -> None:
        self.path = path
        self.disk = Disk(path, on_failure)
        self.lock: FileLock | None = None
        self._filesystem = filesystem
        self._stored: dict[str, Mapping[TopicPartition, int]] = {}

    @property
    def online(self) -> bool:
        return self.disk.failure is None

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """The entries of an offset checkpoint; none when it is absent or malformed."""
        try:
            offsets = checkpoints.decode_offsets(self._filesystem.read_file(f"{self.path}/{name}"))
            self._stored[name] = offsets
            return dict(offsets)
        except FileNotFoundError:
            return {}
        except CorruptFile as error:
            logger.error("ignoring %s/%s: %s", self.path, name, error)
            return {}

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace an offset checkpoint, durable on return."""
        self.disk.check()
        content = checkpoints.encode_offsets(offsets)
        try:
            self._filesystem.write_file_atomically(f"{self.path}/{name}", content)
        except OSError as error:
            raise self.disk.refuse(error, f"checkpoint {name}") from error
        self._stored[name] = offsets

    def forget_offsets(self, key: TopicPartition) -> None:
        """Take a partition out of the checkpoints, before a new log of the same name could be taken for the
        old.
        """
        for name, offsets in list(self._stored.items()):
            if key in offsets:
                self.write_offsets(name, {other: offset for other, offset in offsets.items() if other != key})


class Clock(Protocol):
    """Where the log store asks what time it is."""

    def now_ms(self) -> int: ...


class LogDirs:
    """All logs of one broker. `logs` holds those that are online; `directories` are absolute, as configured.

    `on_failure` is called with the path of a directory that goes offline, after its logs left `logs`.
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
    ) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Copies that are to take the places of the logs."""
        self._filesystem: Filesystem = filesystem or RealFilesystem()
        self.clean_offsets: dict[TopicPartition, int] = {}
        """The partitions that were compacted, with the offsets up to which they are clean."""
        self._preferred: dict[TopicPartition, str] = {}
        self._broker_id = broker_id
        self._cluster_id = cluster_id
        self._clock = clock
        self._config_for = config_for
        self._on_failure = on_failure
        self._deletions = Deletions(self._filesystem)
        paths = dict.fromkeys(os.path.abspath(directory) for directory in directories)
        self._directories = {path: LogDirectory(path, self._filesystem, self._disk_failed) for path in paths}
        self._loader = LogLoader(self._filesystem, self._deletions, clock.now_ms)

    @property
    def directories(self) -> list[str]:
        return list(self._directories)

    @property
    def offline(self) -> set[str]:
        """The directories that failed."""
        return {path for path, directory in self._directories.items() if not directory.online}

    # --- start

    def lock(self) -> None:
        """Take the directories for this process; `load` does it too. Raises LogDirInUse."""
        for directory in self._directories.values():
            if directory.lock is None:
                self._guarded(directory, "open", self._lock)

    def unlock(self) -> None:
        """Give the directories back; `close` does it too."""
        for directory in self._directories.values():
            if directory.lock is not None:
                directory.lock.release()
                directory.lock = None

    def identify(self, broker_id: int, cluster_id: str) -> None:
        """Say whose the directories are, where that was not known before they were locked."""
        self._broker_id = broker_id
        self._cluster_id = cluster_id

    def load(self, progress: RecoveryProgress | None = None, *, keep_gaps: bool = False) -> LoadReport:
        """Lock the directories, check whose they are, and open every log in them. `progress` may come from
        any thread.

        `keep_gaps`: the topics' settings are not known yet, so that missing offsets may be compaction's work.

        Raises LogDirInUse, InconsistentMetaProperties, or LogDirFailure when no directory is left. Nothing is
        changed before all are known to be ours.
        """
        report = LoadReport()
        self.lock()
        try:
            checked = [(d, self._guarded(d, "meta.properties", self._is_new)) for d in self._online()]
            for directory, is_new in checked:
                if is_new:
                    self._guarded(directory, "meta.properties", self._mark)
        except BaseException:
            self.unlock()
            raise
        for directory in self._online():
            self._guarded(directory, "load", self._load_directory, report, keep_gaps, progress)
        report.offline = sorted(self.offline)
        if not self._online():
            raise LogDirFailure(f"every log directory is offline: {', '.join(report.offline)}")
        report.log_count = len(self.logs)
        return report

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories.values() if directory.online]

    def _guarded(
        self, directory: LogDirectory, doing: str, action: Callable[..., T], *arguments: object
    ) -> T | None:
        """Do something for one directory, which goes offline on an OSError while the others go on. What a
        full disk refuses is left for the next time.
        """
        try:
            return action(directory, *arguments)
        except OSError as error:
            directory.disk.fail(error, doing)
        except (LogDirFailure, DiskFull):
            pass
        return None

    def _lock(self, directory: LogDirectory) -> None:
        if not self._filesystem.exists(directory.path):
            self._filesystem.mkdir(directory.path)
            # A parent that we may not read is the administrator's to keep.
            with contextlib.suppress(PermissionError):
                self._filesystem.sync_directory(os.path.dirname(directory.path))
        directory.lock = self._filesystem.lock(f"{directory.path}/{checkpoints.LOCK}")
        if directory.lock is None:
            self.unlock()
            raise LogDirInUse(
                f"another broker uses {directory.path}: stop it, or give this one a log.dirs of its own"
            )

    def _is_new(self, directory: LogDirectory) -> bool:
        """Whether the directory belongs to nobody yet; InconsistentMetaProperties when to another broker."""
        path = f"{directory.path}/{checkpoints.META_PROPERTIES}"
        try:
            stored = checkpoints.decode_properties(self._filesystem.read_file(path))
        except FileNotFoundError:
            return True
        ours = {"cluster.id": self._cluster_id, "broker.id": str(self._broker_id)}
        for name, value in ours.items():
            if stored.get(name, value) != value:
                raise InconsistentMetaProperties(
                    f"{path} says {name}={stored[name]}, this broker has {name}={value}: "
                    "start it with the same, or on other log.dirs"
                )
        return False

    def _mark(self, directory: LogDirectory) -> None:
        properties = {"broker.id": str(self._broker_id), "version": "0", "cluster.id": self._cluster_id}
        self._filesystem.write_file_atomically(
            f"{directory.path}/{checkpoints.META_PROPERTIES}", checkpoints.encode_properties(properties)
        )

    def _load_directory(
        self,
        directory: LogDirectory,
        report: LoadReport,
        keep_gaps: bool,
        progress: RecoveryProgress | None,
    ) -> None:
        filesystem = self._filesystem
        names = sorted(filesystem.listdir(directory.path))
        clean = checkpoints.CLEAN_SHUTDOWN in names
        recovery_points = directory.read_offsets(checkpoints.RECOVERY_POINTS)
        start_offsets = directory.read_offsets(checkpoints.LOG_START_OFFSETS)
        # Compaction left gaps in these, whatever their topic's cleanup.policy says by now.
        cleaned = directory.read_offsets(checkpoints.CLEANER_OFFSETS)
        self.clean_offsets.update(cleaned)
        report.high_watermarks.update(directory.read_offsets(checkpoints.HIGH_WATERMARKS))
        found: list[tuple[TopicPartition, str, LogConfig]] = []
        for name in names:
            path = f"{directory.path}/{name}"
            if name.endswith(DELETE_SUFFIX) and filesystem.is_directory(path):
                self._deletions.schedule(path, self._clock.now_ms())
                continue
            key = parse_directory_name(_name_of_future(name) or name)
            if key is None or not filesystem.is_directory(path):
                continue
            found.append((key, path, self._config_for(key[0])))

        def load(item: tuple[TopicPartition, str, LogConfig]) -> LoadedLog:
            key, path, config = item
            is_future = path.endswith(FUTURE_SUFFIX)
            return self._loader.load(
                directory.disk,
                path,
                key,
                config,
                recovery_point=0 if is_future else recovery_points.get(key, 0),
                log_start_offset=0 if is_future else start_offsets.get(key, 0),
                clean=clean,
                keep_gaps=keep_gaps or key in cleaned or is_future,
                progress=progress,
            )

        for (key, path, _), loaded in zip(found, _on_threads(load, found, waits=not clean), strict=True):
            report.recovered_bytes += loaded.scanned_bytes
            if loaded.truncated_bytes:
                report.truncated[key] = loaded.truncated_bytes
            if path.endswith(FUTURE_SUFFIX):
                self.futures[key] = loaded.log
            else:
                self._add_longer(directory, key, loaded.log)
        if clean:
            # From now on a crash leaves unclean logs. Durable before the first append can be.
            filesystem.unlink(f"{directory.path}/{checkpoints.CLEAN_SHUTDOWN}")
            filesystem.sync_directory(directory.path)
        else:
            report.clean = report.clean and not self._logs_in(directory)
            self._write_recovery_points(directory)

    def _add_longer(self, directory: LogDirectory, key: TopicPartition, log: Log) -> None:
        """Add a log that was found, or keep the one that was found elsewhere (see the module)."""
        other = self.logs.get(key)
        if other is not None:
            shorter = log if log.log_end_offset <= other.log_end_offset else other
            path = self._rename(shorter, STRAY_SUFFIX)
            logger.warning("two directories hold %s-%d: the shorter one is now %s", *key, path)
            if shorter is log:
                return
        self._add(directory, key, log)

    def _add(self, directory: LogDirectory, key: TopicPartition, log: Log) -> None:
        def before_truncation(offset: int) -> None:
            self._write_recovery_points(directory)
            self._write_log_start_offsets(directory)
            if self.clean_offsets.get(key, -1) > offset:
                # What comes in the place of the lost records was never cleaned.
                base_offset = log.segments.all[log.segments.number_of(offset)].base_offset
                self.clean_offsets[key] = min(base_offset, offset)
                self._write_clean_offsets(directory)

        log.before_truncation = before_truncation
        self.logs[key] = log

    # --- create and delete

    def prefer(self, topic: str, partition: int, directory: str) -> None:
        """Have a log that does not exist yet be created in this directory, if it is online then (KIP-113)."""
        while len(self._preferred) >= PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic, partition] = directory

    def create(self, topic: str, partition: int, topic_id: UUID) -> Log:
        """A new, empty log: in its preferred directory, or in that with space that holds the fewest. Durable
        with its first flush.

        Raises LogDirFailure when no directory is online, DiskFull when there is no space for it.
        """
        key = (topic, partition)
        if key in self.logs:
            return self.logs[key]
        online = self._online()
        if not online:
            raise LogDirFailure("every log directory is offline")
        counts = dict.fromkeys((directory.path for directory in online), 0)
        for log in self.logs.values():
            counts[log.disk.path] += 1
        preferred = self._preferred.pop(key, None)
        online.sort(key=lambda candidate: (candidate.path != preferred, counts[candidate.path]))
        for directory in online[:-1]:
            with contextlib.suppress(DiskFull):
                return self._create(directory, key, topic_id)
        return self._create(online[-1], key, topic_id)

    def _create(self, directory: LogDirectory, key: TopicPartition, topic_id: UUID) -> Log:
        topic, partition = key
        path = f"{directory.path}/{topic}-{partition}"
        directory.forget_offsets(key)
        try:
            log = self._loader.create(directory.disk, path, key, topic_id, self._config_for(topic))
        except (OSError, DiskFull) as error:
            with contextlib.suppress(OSError):
                remove(self._filesystem, path)
            if isinstance(error, DiskFull):
                raise
            raise directory.disk.refuse(error, f"create {path}") from error
        self._add(directory, key, log)
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Drop a log: its folder is renamed at once and removed after file.delete.delay.ms."""
        self.cancel_move(topic, partition)
        log = self.logs.pop((topic, partition))
        self.clean_offsets.pop((topic, partition), None)
        target = self._rename(log, DELETE_SUFFIX)
        self._deletions.schedule(target, self._clock.now_ms() + log.config.file_delete_delay_ms)

    def set_aside(self, topic: str, partition: int) -> str:
        """Rename a log's folder, so that it is in nobody's way and somebody may look at it; the new path."""
        self.clean_offsets.pop((topic, partition), None)
        return self._rename(self.logs.pop((topic, partition)), STRAY_SUFFIX)

    # --- move to another directory

    def begin_move(self, topic: str, partition: int, directory: str) -> Log:
        """An empty log in `directory`, for the caller to copy the present one into; in the place of any that
        was begun before. Raises LogDirFailure, DiskFull.
        """
        self.cancel_move(topic, partition)
        key = (topic, partition)
        log, target = self.logs[key], self._directories[directory]
        target.disk.check()
        path = f"{directory}/{_long_name(topic, partition, FUTURE_SUFFIX)}"
        topic_id = log.topic_id or UUID(int=0)
        try:
            future = self._loader.create(target.disk, path, key, topic_id, self._config_for(topic))
        except OSError as error:
            raise target.disk.refuse(error, f"create {path}") from error
        self.futures[key] = future
        return future

    def cancel_move(self, topic: str, partition: int) -> None:
        """Drop the copy, if there is one."""
        future = self.futures.pop((topic, partition), None)
        if future is not None and future.disk.failure is None:
            self._deletions.schedule(self._rename(future, DELETE_SUFFIX), self._clock.now_ms())

    def finish_move(self, topic: str, partition: int) -> Log:
        """Have the copy, which holds the same batches, take the place of the log; the log from now on.

        Raises LogDirFailure, DiskFull; then the log is where it was, or its directory is offline.
        """
        key = (topic, partition)
        log, future = self.logs[key], self.futures.pop(key)
        assert future.log_end_offset == log.log_end_offset
        target = self._directories[future.disk.path]
        future.producers = log.producers
        future.take_leader_epochs(log.leader_epochs)
        future.close()
        path = f"{target.path}/{topic}-{partition}"
        target.forget_offsets(key)
        try:
            self._filesystem.rename(future.directory, path)
            self._filesystem.sync_directory(target.path)
            loaded = self._loader.load(
                target.disk,
                path,
                key,
                self._config_for(topic),
                recovery_point=log.log_end_offset,
                log_start_offset=log.log_start_offset,
                clean=True,
            )
        except OSError as error:
            raise target.disk.fail(error, f"move to {path}") from error
        self._deletions.schedule(
            self._rename(log, DELETE_SUFFIX), self._clock.now_ms() + log.config.file_delete_delay_ms
        )
        self._add(target, key, loaded.log)
        self._write_recovery_points(target)
        self._write_log_start_offsets(target)
        return loaded.log

    def _rename(self, log: Log, ending: str) -> str:
        directory = self._directories[log.disk.path]
        target = f"{directory.path}/{_long_name(log.topic, log.partition, ending)}"
        try:
            self._filesystem.rename(log.directory, target)
            log.moved(target)
            self._filesystem.sync_directory(directory.path)
        except OSError as error:
            raise directory.disk.fail(error, f"rename {log.directory}") from error
        return target

    def update_config(self, topic: str) -> None:
        """Fetch the settings of a topic anew for all of its logs."""
        config = self._config_for(topic)
        for (name, _), log in [*self.logs.items(), *self.futures.items()]:
            if name == topic:
                log.update_config(config)

    def tick(self, now_ms: int) -> int:
        """Remove files and folders whose delay is over; how many. May run in a thread."""
        return self._deletions.run(now_ms)

    # --- checkpoints

    def checkpoint_recovery_points(self) -> None:
        """Note up to where each log is durable, so that a recovery starts there. May run in a thread."""
        for directory in self._online():
            self._guarded(directory, "checkpoint", self._write_recovery_points)

    def _write_recovery_points(self, directory: LogDirectory) -> None:
        directory.write_offsets(
            checkpoints.RECOVERY_POINTS,
            {key: log.flushed_end_offset for key, log in self._logs_in(directory).items()},
        )

    def checkpoint_log_start_offsets(self) -> None:
        """Note where logs start, so that neither DeleteRecords nor retention is undone. May run in a
        thread.
        """
        for directory in self._online():
            self._guarded(directory, "checkpoint", self._write_log_start_offsets)

    def _write_log_start_offsets(self, directory: LogDirectory) -> None:
        # Kafka notes only starts inside a segment. Ours says it also when a start is that of the oldest
        # segment, since a crash may bring back the names of segments that were deleted before it.
        directory.write_offsets(
            checkpoints.LOG_START_OFFSETS,
            {
                key: log.log_start_offset
                for key, log in self._logs_in(directory).items()
                if log.log_start_offset > 0
            },
        )

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Note the high watermarks that the caller knows. May run in a thread."""
        for directory in self._online():
            self._guarded(directory, "checkpoint", self._write_high_watermarks, high_watermarks)

    def checkpoint_clean_offsets(self) -> None:
        """Note up to where logs are clean. May run in a thread."""
        for directory in self._online():
            self._guarded(directory, "checkpoint", self._write_clean_offsets)

    def _write_clean_offsets(self, directory: LogDirectory) -> None:
        clean_offsets = dict(self.clean_offsets)
        held = {key: clean_offsets[key] for key in self._logs_in(directory) if key in clean_offsets}
        directory.write_offsets(checkpoints.CLEANER_OFFSETS, held)

    def _write_high_watermarks(
        self, directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        directory.write_offsets(
            checkpoints.HIGH_WATERMARKS,
            {key: high_watermarks[key] for key in self._logs_in(directory) if key in high_watermarks},
        )

    def _logs_in(self, directory: LogDirectory) -> dict[TopicPartition, Log]:
        return {key: log for key, log in list(self.logs.items()) if log.disk is directory.disk}

    def _disk_failed(self, disk: Disk) -> None:
        # Replaced, not changed: a flush in a thread may find the failure while the loop walks over the logs.
        logs = self.logs
        self.logs = {key: log for key, log in logs.items() if log.disk is not disk}
        lost = [key for key, log in logs.items() if log.disk is disk]
        futures = self.futures.items()
        self.futures = {key: log for key, log in futures if log.disk is not disk and key in self.logs}
        if self._on_failure is not None:
            self._on_failure(disk.path, lost)

    # --- the end

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Flush and close every log, write the checkpoints and then the marker of a clean stop; give up the
        locks.
        """
        for directory in self._online():
            self._guarded(directory, "close", self._close_directory, high_watermarks or {})
        self.unlock()

    def _close_directory(
        self, directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        futures = [log for log in self.futures.values() if log.disk is directory.disk]
        _on_threads(Log.close, [*self._logs_in(directory).values(), *futures], waits=True)
        self._write_recovery_points(directory)
        self._write_log_start_offsets(directory)
        self._write_high_watermarks(directory, high_watermarks)
        self._filesystem.write_file_atomically(
            f"{directory.path}/{checkpoints.CLEAN_SHUTDOWN}", checkpoints.encode_clean_shutdown()
        )


def _on_threads(action: Callable[[S], T], items: Sequence[S], *, waits: bool) -> list[T]:
    """Do something for many logs; on threads when each waits for the disk, so that syncs share a journal
    commit.
    """
    if not waits or len(items) < THREADS:
        return [action(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS, thread_name_prefix="log-dirs") as pool:
        return list(pool.map(action, items))


def _long_name(topic: str, partition: int, ending: str) -> str:
    """The name of a folder with a random part and an ending. Long topic names are cut so that it stays within
    the bytes that a file name may have, as Kafka does.
    """
    suffix = f".{uuid4().hex}{ending}"
    return f"{topic}-{partition}"[: NAME_BYTES_MAX - len(suffix)] + suffix


def _name_of_future(name: str) -> str | None:
    """What the folder of a copy will be called; None for any other folder, and where the name was cut."""
    is_whole = name.endswith(FUTURE_SUFFIX) and len(name) < NAME_BYTES_MAX
    return name.rpartition(".")[0] if is_whole else None


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition that a folder of this name holds; None for anything else, which is left alone."""
    topic, separator, number = name.rpartition("-")
    if not separator or not topic or not number.isdecimal() or "." in number:
        return None
    return topic, int(number)


def stored_meta_properties(
    directories: Sequence[str], filesystem: Filesystem | None = None
) -> dict[str, str]:
    """The first meta.properties found (`cluster.id`, `broker.id`); empty for new directories."""
    files = filesystem or RealFilesystem()
    for directory in directories:
        try:
            return checkpoints.decode_properties(
                files.read_file(f"{os.path.abspath(directory)}/{checkpoints.META_PROPERTIES}")
            )
        except OSError:
            continue
    return {}
