"""Delayed deletion: files that are out of use and are removed after file.delete.delay.ms."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator

from kafka_compat.storage.filesystem import Filesystem

logger = logging.getLogger(__name__)


class Deletions:
    """The paths of one directory, with the time at which they are due. `schedule` from any thread, `run` in
    the directory's worker.
    """

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._pending: deque[tuple[int, str]] = deque()

    def schedule(self, path: str, due_ms: int) -> None:
        """Remove the file, or the directory with its files, once the time has come."""
        self._pending.append((due_ms, path))

    def directories(self) -> set[str]:
        """The directories in which something waits to be removed."""
        return {path.rpartition("/")[0] for _, path in list(self._pending)}

    def run(self, now_ms: int) -> Iterator[None]:
        """Remove what is due, a file at each step: that of a large one may take a while. A failure is logged,
        for the next start removes leftovers.
        """
        for _ in range(len(self._pending)):
            due_ms, path = self._pending.popleft()
            if due_ms > now_ms:
                self._pending.append((due_ms, path))
                continue
            try:
                yield from _remove_in_steps(self._filesystem, path)
            except OSError as error:
                logger.warning("cannot remove %s: %s", path, error)


def remove(filesystem: Filesystem, path: str) -> None:
    """Unlink a file, or a directory of plain files; nothing happens when it is gone already."""
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
