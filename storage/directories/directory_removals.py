"""Removal of partition directories. A partition with the same name may be recreated after the removal.

The order of the steps follows rule 1 of `log_directory`: rename the partition directory, sync the log
directory, then write checkpoints without the partition.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_compat.storage.errors import RefusedForNow, StorageError

if TYPE_CHECKING:
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.directories.deletions import Deletions
    from kafka_compat.storage.directories.directory_worker import Done, Worker
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.directories.offset_checkpoints import OffsetCheckpoints
    from kafka_compat.storage.filesystem import Filesystem

RENAMES_PER_STEP = 32


class _Removal:
    """A partition directory to rename. Its files are deleted at `due_ms`, or kept if `due_ms` is None."""

    __slots__ = ("done", "due_ms", "is_renamed", "key", "source", "target")

    def __init__(
        self, key: TopicPartition, source: str, target: str, due_ms: int | None, done: Done | None
    ) -> None:
        self.key = key
        self.source = source
        self.target = target
        self.due_ms = due_ms
        self.done = done
        self.is_renamed = False


class DirectoryRemovals:
    """The pending removals from one log directory. Only `settle` runs in the directory's worker."""

    def __init__(
        self,
        filesystem: Filesystem,
        disk: Disk,
        checkpoints: OffsetCheckpoints,
        deletions: Deletions,
        worker: Worker,
    ) -> None:
        self._filesystem = filesystem
        self._disk = disk
        self._checkpoints = checkpoints
        self._deletions = deletions
        self._worker = worker
        self._waiting: deque[_Removal] = deque()
        self._leaving: dict[TopicPartition, list[Done]] = {}
        """Callbacks for partitions whose directory or checkpoint entries are being removed."""

    @property
    def is_waited_for(self) -> bool:
        """Whether a removal is pending, or a caller is waiting for one."""
        return bool(self._waiting) or any(self._leaving.values())

    def add(
        self, key: TopicPartition, source: str, target: str, due_ms: int | None, done: Done | None
    ) -> None:
        """Schedule the rename of a partition directory for the next `settle` (see `LogDirectory.remove`)."""
        # Append the removal first, because `settle`, which runs concurrently, reads `_leaving` first.
        self._waiting.append(_Removal(key, source, target, due_ms, done))
        self._leaving.setdefault(key, [])

    def is_free(self, key: TopicPartition) -> bool:
        """Whether neither a pending removal nor a checkpoint entry refers to the partition."""
        return not (key in self._leaving or self._checkpoints.names(key))

    def when_free(self, key: TopicPartition, done: Done) -> None:
        """Call `done` after the next `settle`, with an error if the partition is still not free."""
        self._leaving.setdefault(key, []).append(done)

    def give_up(self, failure: Exception | None) -> None:
        """Call all waiting callbacks with `failure`, the error of the failed disk."""
        while self._waiting:
            self._tell(self._waiting.popleft(), failure)
        self._finish(failure, list(self._leaving))
        self._leaving.clear()

    def settle(self) -> Iterator[None]:
        """Carry out the pending removals. Raises LogDirFailure, or RefusedForNow if a retry is possible."""
        # `add` stores the removal before the key, so the removal of each key in this list is handled below.
        leaving = list(self._leaving)
        removals: list[_Removal] = []
        while self._waiting:
            removals.append(self._waiting.popleft())
        leaving = list(dict.fromkeys([*leaving, *(removal.key for removal in removals)]))
        if not leaving:
            return
        try:
            yield from self._rename(removals)
            self._checkpoints.forget(leaving)
        except StorageError as error:
            self._refused(error, removals, leaving)
            raise
        self._worker.hand_back(lambda: self._finish(None, leaving))

    def _refused(self, error: StorageError, removals: list[_Removal], leaving: list[TopicPartition]) -> None:
        for removal in removals:
            self._tell(removal, error)
        if isinstance(error, RefusedForNow):
            self._waiting.extendleft(reversed([item for item in removals if not item.is_renamed]))
        self._worker.hand_back(lambda: self._finish(error, leaving))

    def _rename(self, removals: list[_Removal]) -> Iterator[None]:
        self._disk.check()
        if not removals:
            return
        path = self._disk.path
        try:
            for number, removal in enumerate(removals, 1):
                # An earlier attempt may have renamed the directory.
                with contextlib.suppress(FileNotFoundError):
                    self._filesystem.rename(removal.source, removal.target)
                if number % RENAMES_PER_STEP == 0:
                    yield
            self._filesystem.sync_directory(path)
        except OSError as error:
            raise self._disk.refuse(error, f"rename of directories in {path}") from error
        for removal in removals:
            removal.is_renamed = True
            if removal.due_ms is not None:
                self._deletions.schedule(removal.target, removal.due_ms)
            self._tell(removal, None)
        yield

    def _tell(self, removal: _Removal, error: Exception | None) -> None:
        done, removal.done = removal.done, None
        if done is not None:
            self._worker.hand_back(lambda: done(error))

    def _finish(self, error: Exception | None, keys: list[TopicPartition]) -> None:
        """Call the callbacks for these partitions with `error`, which is None if the partitions are free."""
        for key in keys:
            waiters = self._leaving.get(key, [])
            if error is None:
                self._leaving.pop(key, None)
            else:
                self._leaving[key] = []
            for waiter in waiters:
                waiter(error)
