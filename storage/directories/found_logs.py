"""Scan at startup that opens every log in one log directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kafka_compat.storage.directories import checkpoints, log_summaries
from kafka_compat.storage.directories.deletions import remove
from kafka_compat.storage.directories.directory_names import (
    DELETE_SUFFIX,
    METADATA_LOG,
    directory_name,
    is_future,
    partition_of,
)
from kafka_compat.storage.directories.machine_crash import may_have_lost_writes
from kafka_compat.storage.errors import CorruptFile

if TYPE_CHECKING:
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.directories.log_directory import LogDirectory
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.log.loader import LoadedLog
    from kafka_compat.storage.log.log import Log
    from kafka_compat.storage.log.recovery import RecoveryProgress

logger = logging.getLogger(__name__)

THREADS = 16
"""Number of threads that open and close logs. With fewer logs, no threads are used."""

S = TypeVar("S")
T = TypeVar("T")


class FoundLogs:
    """The logs found and opened in one directory, and the content of its checkpoints."""

    def __init__(self, *, clean: bool) -> None:
        """`clean` is true if the directory was shut down cleanly."""
        self.clean = clean
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        self.cleaned: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.duplicates: list[Log] = []
        """Logs for which another directory contains a log that is at least as long."""
        self.recovered_bytes = 0
        self.truncated: dict[TopicPartition, int] = {}


def find_logs(
    directory: LogDirectory,
    filesystem: Filesystem,
    config_for: Callable[[str], LogConfig],
    keep_gaps: bool,
    progress: RecoveryProgress | None,
) -> FoundLogs:
    """Open every log in a log directory. Raises OSError."""
    names = sorted(filesystem.listdir(directory.path))
    _remove_deleted(directory, filesystem, names)
    found = FoundLogs(clean=checkpoints.CLEAN_SHUTDOWN in names)
    read = directory.checkpoints.read
    recovery_points = read(checkpoints.RECOVERY_POINTS)
    start_offsets = read(checkpoints.LOG_START_OFFSETS)
    # After a machine crash, gaps are damage: a segment's end may be lost although the next segment is not.
    lost_writes = may_have_lost_writes(filesystem, directory.path)
    keep_gaps = keep_gaps or not lost_writes
    summaries = {} if lost_writes and not found.clean else _read_summaries(filesystem, directory.path)
    # These logs were compacted and may have gaps, even if their topics are no longer compacted.
    found.cleaned = read(checkpoints.CLEANER_OFFSETS)
    found.high_watermarks = read(checkpoints.HIGH_WATERMARKS)
    items: list[tuple[TopicPartition, str, LogConfig]] = []
    configs: dict[str, LogConfig] = {}
    for name in names:
        path = f"{directory.path}/{name}"
        key = partition_of(name)
        if key is None or name == METADATA_LOG:
            continue
        config = configs.get(key[0])
        if config is None:
            config = configs[key[0]] = config_for(key[0])
        line = summaries.get(key) if name == directory_name(key) else None
        if line is not None:
            log = _reopen(directory, path, key, config, line, recovery_points, start_offsets, found.clean)
            if log is not None:
                found.logs[key] = log
                continue
        if _is_directory(filesystem, path):
            items.append((key, path, config))

    def load(item: tuple[TopicPartition, str, LogConfig]) -> LoadedLog:
        key, path, config = item
        is_copy = is_future(path)
        return directory.loader.load(
            directory.disk,
            path,
            key,
            config,
            recovery_point=0 if is_copy else recovery_points.get(key, 0),
            log_start_offset=0 if is_copy else start_offsets.get(key, 0),
            clean=found.clean,
            keep_gaps=keep_gaps or key in found.cleaned or is_copy,
            progress=progress,
        )

    for (key, path, _), loaded in zip(items, on_threads(load, items, waits=not found.clean), strict=True):
        found.recovered_bytes += loaded.scanned_bytes
        if loaded.truncated_bytes:
            found.truncated[key] = loaded.truncated_bytes
        (found.futures if is_future(path) else found.logs)[key] = loaded.log
    return found


def _remove_deleted(directory: LogDirectory, filesystem: Filesystem, names: Sequence[str]) -> None:
    """Remove the directories of deleted logs before logs are opened, to free space if the disk is full."""
    for name in names:
        path = f"{directory.path}/{name}"
        if name.endswith(DELETE_SUFFIX) and partition_of(name) is None and _is_directory(filesystem, path):
            try:
                remove(filesystem, path)
            except OSError as error:
                logger.warning("Could not remove %s: %s; retrying later", path, error)
                directory.deletions.schedule(path, 0)


def _is_directory(filesystem: Filesystem, path: str) -> bool:
    if filesystem.is_directory(path):
        return True
    logger.warning("Ignored %s: it has the name of a partition directory, but is a file", path)
    return False


def _read_summaries(filesystem: Filesystem, directory: str) -> dict[TopicPartition, str]:
    path = f"{directory}/{log_summaries.LOG_SUMMARIES}"
    try:
        return log_summaries.read_lines(filesystem.read_file(path))
    except FileNotFoundError:
        return {}
    except CorruptFile as error:
        logger.warning("Ignored the invalid log summaries in %s: %s", path, error)
        return {}


def _reopen(
    directory: LogDirectory,
    path: str,
    key: TopicPartition,
    config: LogConfig,
    line: str,
    recovery_points: Mapping[TopicPartition, int],
    start_offsets: Mapping[TopicPartition, int],
    clean: bool,
) -> Log | None:
    """Open a log with the summary of its last clean shutdown. Return None if the log has since changed."""
    summary = log_summaries.decode(line)
    # If the recovery point differs, a truncation may have begun: it lowers the recovery point first.
    if not clean and recovery_points.get(key) != summary.end_offset:
        return None
    return directory.loader.reopen(directory.disk, path, key, config, summary, start_offsets.get(key, 0))


def on_threads(action: Callable[[S], T], items: Sequence[S], *, waits: bool) -> list[T]:
    """Call `action` for each item, and return the results. If the calls wait for the disk (`waits`), run them
    in threads, so that their syncs can share a commit of the file system's journal.
    """
    if not waits or len(items) < THREADS:
        return [action(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS, thread_name_prefix="log-dirs") as pool:
        return list(pool.map(action, items))
