"""Delayed deletion of files that are no longer in use, after file.delete.delay.ms."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Filesystem

logger = logging.getLogger(__name__)

REMOVED_PER_RUN = 32


class Deletions:
    """Pending deletions in one log directory, with their due times. `schedule` may be called from any thread,
    but `run` only in the directory's worker.
    """

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._pending: deque[tuple[int, str]] = deque()
        self.has_more = False
        """Whether the last `run` ended early."""

    def schedule(self, path: str, due_ms: int) -> None:
        """Schedule the deletion of a file, or of a directory with its files, at `due_ms`."""
        self._pending.append((due_ms, path))

    def directories(self) -> set[str]:
        """Return the directories that contain files or directories to be deleted."""
        return {path.rpartition("/")[0] for _, path in list(self._pending)}

    def run(self, now_ms: int) -> Iterator[None]:
        """Delete due files and directories, and yield after each file, because deleting a large file may take
        a while. If REMOVED_PER_RUN were deleted, `has_more` is true: the next run, after other jobs, deletes
        more. Failures are logged, and the next startup removes the remaining files.
        """
        self.has_more = False
        removed = 0
        for _ in range(len(self._pending)):
            if removed == REMOVED_PER_RUN:
                self.has_more = True
                return
            due_ms, path = self._pending.popleft()
            if due_ms > now_ms:
                self._pending.append((due_ms, path))
                continue
            removed += 1
            try:
                yield from _remove_in_steps(self._filesystem, path)
            except OSError as error:
                logger.warning("Could not remove %s: %s", path, error)


def remove(filesystem: Filesystem, path: str) -> None:
    """Delete a file, or a directory that contains only files, if it exists."""
    for _ in _remove_in_steps(filesystem, path):
        pass


def _remove_in_steps(filesystem: Filesystem, path: str) -> Iterator[None]:
    if not filesystem.is_directory(path):
        filesystem.unlink(path)
        yield
        return
    for name in filesystem.listdir(path):
        filesystem.unlink(f"{path}/{name}")
        yield
    filesystem.rmdir(path)
    yield
