"""Files that are out of use and wait for file.delete.delay.ms before they go."""

from __future__ import annotations

import logging
from collections import deque

from storage.filesystem import Filesystem

logger = logging.getLogger(__name__)


class Deletions:
    """Paths with the time at which they are due. `schedule` on the loop, `run` in any one thread."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._pending: deque[tuple[int, str]] = deque()

    def schedule(self, path: str, due_ms: int) -> None:
        """Remove the file, or the folder with its files, once the time has come."""
        self._pending.append((due_ms, path))

    def run(self, now_ms: int) -> int:
        """Remove what is due; how many that was. A failure is logged, for the next start removes
        leftovers.
        """
        removed = 0
        for _ in range(len(self._pending)):
            due_ms, path = self._pending.popleft()
            if due_ms > now_ms:
                self._pending.append((due_ms, path))
                continue
            try:
                remove(self._filesystem, path)
                removed += 1
            except OSError as error:
                logger.warning("cannot remove %s: %s", path, error)
        return removed


def remove(filesystem: Filesystem, path: str) -> None:
    """Unlink a file, or a folder of plain files; nothing happens when it is gone already."""
    if not filesystem.is_directory(path):
        filesystem.unlink(path)
        return
    for name in filesystem.listdir(path):
        filesystem.unlink(f"{path}/{name}")
    filesystem.rmdir(path)
