"""Ownership of a log directory: it belongs to one broker, and only one process at a time may use it."""

import contextlib
import os
from collections.abc import Sequence

from kafka_compat.storage.directories.checkpoints import LOCK, META_PROPERTIES, encode_properties
from kafka_compat.storage.errors import InconsistentMetaProperties, LogDirInUse
from kafka_compat.storage.filesystem import FileLock, Filesystem, RealFilesystem

_NUMBERS = ("broker.id", "node.id", "version")


def why_unusable(path: str, error: OSError) -> str:
    """Return the reason why a log directory cannot be used, as text for administrators."""
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
    return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)


class DirectoryClaim:
    """The files `.lock` and meta.properties of one log directory. Methods raise OSError."""

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self._path = path
        self._filesystem = filesystem
        self._lock: FileLock | None = None

    def lock(self) -> None:
        """Lock the directory, and create it if it is missing. Raises LogDirInUse if it is already locked."""
        if self._lock is not None:
            return
        try:
            if not self._filesystem.exists(self._path):
                self._filesystem.mkdir(self._path)
                # Ignore an unreadable parent directory, because only the administrator can fix it.
                with contextlib.suppress(PermissionError):
                    self._filesystem.sync_directory(os.path.dirname(self._path))
            self._lock = self._filesystem.lock(f"{self._path}/{LOCK}")
        except OSError as error:
            raise OSError(error.errno, why_unusable(self._path, error)) from error
        if self._lock is None:
            raise LogDirInUse(
                f"another broker uses {self._path}: stop it, or give this broker its own log.dirs"
            )

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def is_new(self, broker_id: int, cluster_id: str) -> bool:
        """Whether the directory has no owner. Raises InconsistentMetaProperties if another broker owns it."""
        stored = _read(self._filesystem, self._path)
        for name, value in {"cluster.id": cluster_id, "broker.id": str(broker_id)}.items():
            if stored.get(name, value) != value:
                raise InconsistentMetaProperties(
                    f"{self._path}/{META_PROPERTIES} has {name}={stored[name]}, but this broker has "
                    f"{name}={value}: use the same value or other log.dirs"
                )
        return not stored

    def mark(self, broker_id: int, cluster_id: str) -> None:
        """Record this broker as the owner of the directory in meta.properties."""
        properties = {"broker.id": str(broker_id), "version": "0", "cluster.id": cluster_id}
        path = f"{self._path}/{META_PROPERTIES}"
        self._filesystem.write_file_atomically(path, encode_properties(properties))


def _read(filesystem: Filesystem, directory: str) -> dict[str, str]:
    """Return the entries of meta.properties, or an empty dictionary if the file is missing. Raises
    InconsistentMetaProperties if a line is invalid, because the directory may belong to other software.
    """
    path = f"{directory}/{META_PROPERTIES}"
    try:
        content = filesystem.read_file(path)
    except FileNotFoundError:
        return {}
    properties: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not name.isprintable() or not value.isprintable():
            raise _unreadable(path, number, "is not name=value")
        if name in _NUMBERS and not value.removeprefix("-").isdecimal():
            raise _unreadable(path, number, f"contains {name}={value}, which is not a number")
        properties[name] = value
    return properties


def stored_meta_properties(
    directories: Sequence[str], filesystem: Filesystem | None = None
) -> dict[str, str]:
    """Return the entries of the first meta.properties found, such as `cluster.id`, or an empty dictionary if
    no directory has this file. Raises InconsistentMetaProperties if a line of the file is invalid.
    """
    files = filesystem or RealFilesystem()
    for directory in directories:
        try:
            found = _read(files, os.path.abspath(directory))
        except OSError:
            continue
        if found:
            return found
    return {}


def _unreadable(path: str, number: int, problem: str) -> InconsistentMetaProperties:
    return InconsistentMetaProperties(
        f"{path}, line {number} {problem}: restore the file from a backup, or remove it if the directory "
        "certainly belongs to this broker"
    )
