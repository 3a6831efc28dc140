"""What a start finds in one log directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from kafka_compat.storage import checkpoints
from kafka_compat.storage.checkpoints import TopicPartition
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.filesystem import Filesystem
from kafka_compat.storage.folder_names import DELETE_SUFFIX, is_future, partition_of
from kafka_compat.storage.loader import LoadedLog, RecoveryProgress
from kafka_compat.storage.log import Log
from kafka_compat.storage.log_directory import LogDirectory
from kafka_compat.storage.machine_crash import may_have_lost_writes

logger = logging.getLogger(__name__)

THREADS = 16
"""For what waits for the disk at start and stop; fewer logs than this are done one after the other."""

S = TypeVar("S")
T = TypeVar("T")


class FoundLogs:
    """The logs of one directory, opened, and what its checkpoints say."""

    def __init__(self, *, clean: bool) -> None:
        """`clean`: whether the directory was closed cleanly."""
        self.clean = clean
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        self.cleaned: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.twins: list[Log] = []
        """Logs of which another directory holds more."""
        self.recovered_bytes = 0
        self.truncated: dict[TopicPartition, int] = {}


def find_logs(
    directory: LogDirectory,
    filesystem: Filesystem,
    config_for: Callable[[str], LogConfig],
    keep_gaps: bool,
    progress: RecoveryProgress | None,
) -> FoundLogs:
    """Open every log in a directory; what a deletion left there is deleted later. Raises OSError."""
    names = sorted(filesystem.listdir(directory.path))
    found = FoundLogs(clean=checkpoints.CLEAN_SHUTDOWN in names)
    read = directory.checkpoints.read
    recovery_points = read(checkpoints.RECOVERY_POINTS)
    start_offsets = read(checkpoints.LOG_START_OFFSETS)
    # A crash of the machine can have lost the end of a segment and kept the next one.
    keep_gaps = keep_gaps or not may_have_lost_writes(filesystem, directory.path)
    # Compaction left gaps in these, whatever their topic's cleanup.policy says by now.
    found.cleaned = read(checkpoints.CLEANER_OFFSETS)
    found.high_watermarks = read(checkpoints.HIGH_WATERMARKS)
    items: list[tuple[TopicPartition, str, LogConfig]] = []
    for name in names:
        path = f"{directory.path}/{name}"
        key = partition_of(name)
        if key is None and not name.endswith(DELETE_SUFFIX):
            continue
        if not filesystem.is_directory(path):
            logger.warning("ignoring %s: it has the name of a log's folder, and is a file", path)
        elif key is None:
            directory.deletions.schedule(path, 0)
        else:
            items.append((key, path, config_for(key[0])))

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


def on_threads(action: Callable[[S], T], items: Sequence[S], *, waits: bool) -> list[T]:
    """Do something for many logs; on threads when each waits for the disk, so that syncs share a journal
    commit.
    """
    if not waits or len(items) < THREADS:
        return [action(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS, thread_name_prefix="log-dirs") as pool:
        return list(pool.map(action, items))
