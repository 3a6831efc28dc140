"""The owner of a log directory: one process at a time, and for good one broker of one cluster."""

from __future__ import annotations

import contextlib
import os

from kafka_compat.storage.directories import meta_properties
from kafka_compat.storage.directories.checkpoints import LOCK
from kafka_compat.storage.errors import LogDirInUse
from kafka_compat.storage.filesystem import FileLock, Filesystem


def why_unusable(path: str, error: OSError) -> str:
    """Why `error` came when a log directory was to be used, as an administrator can act on it."""
    if os.path.islink(path) and not os.path.exists(path):
        return f"{path} is a symbolic link to {os.path.realpath(path)}, which does not exist"
    existing = path
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"{existing} is not a directory"
    if os.statvfs(existing).f_flag & os.ST_RDONLY:
        return f"{existing} is on a read-only file system"
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        return f"user {os.geteuid()} cannot read and write in {existing}"
    return str(error)


class DirectoryClaim:
    """The `.lock` and meta.properties of one directory. Methods raise OSError."""

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self._path = path
        self._filesystem = filesystem
        self._lock: FileLock | None = None

    def lock(self) -> None:
        """Take the directory for this process, creating it if it is missing. Raises LogDirInUse, OSError."""
        if self._lock is not None:
            return
        try:
            if not self._filesystem.exists(self._path):
                self._filesystem.mkdir(self._path)
                # A parent that we may not read is the administrator's to keep.
                with contextlib.suppress(PermissionError):
                    self._filesystem.sync_directory(os.path.dirname(self._path))
            self._lock = self._filesystem.lock(f"{self._path}/{LOCK}")
        except OSError as error:
            raise OSError(error.errno, why_unusable(self._path, error)) from error
        if self._lock is None:
            raise LogDirInUse(
                f"another broker uses {self._path}: stop it, or give this one a log.dirs of its own"
            )

    def unlock(self) -> None:
        """Give the directory back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def is_new(self, broker_id: int, cluster_id: str) -> bool:
        """Whether no broker owns it yet. Raises InconsistentMetaProperties when another broker does."""
        stored = meta_properties.read(self._filesystem, self._path)
        meta_properties.check(self._path, stored, broker_id, cluster_id)
        return not stored

    def mark(self, broker_id: int, cluster_id: str) -> None:
        """Make it this broker's."""
        meta_properties.write(self._filesystem, self._path, broker_id, cluster_id)
