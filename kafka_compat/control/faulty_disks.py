"""Disks that are full, fail, or are slow, because a test says so: what the log store asks of the file system,
with an error or a delay in between.

Reads of records go on where a disk is full or slow; where it has failed, they fail, too. What other processes
and the metadata's journal write is not touched.
"""

from __future__ import annotations

import errno
import os
import time
from typing import NamedTuple

from kafka_compat.storage.filesystem import Buffer, File, RealFilesystem


class DiskFault(NamedTuple):
    """What is wrong with a log directory."""

    is_full: bool = False
    """Nothing more can be written (ENOSPC)."""
    has_failed: bool = False
    """Nothing can be read or written (EIO)."""
    slow_ms: int = 0
    """How much longer each write and sync takes."""


class Disks:
    """Those of all brokers of a process, by the paths of their log directories."""

    def __init__(self) -> None:
        self.faults: dict[str, DiskFault] = {}

    def before_write(self, path: str) -> None:
        """Raises OSError."""
        if self.faults and (fault := self._fault_of(path)) is not None:
            if fault.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            self._before(fault, path)

    def before_sync(self, path: str) -> None:
        """Raises OSError."""
        if self.faults and (fault := self._fault_of(path)) is not None:
            self._before(fault, path)

    def before_read(self, path: str) -> None:
        """Raises OSError."""
        if self.faults and (fault := self._fault_of(path)) is not None and fault.has_failed:
            self._before(fault, path)

    def _before(self, fault: DiskFault, path: str) -> None:
        if fault.has_failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if fault.slow_ms:
            time.sleep(fault.slow_ms / 1000)

    def _fault_of(self, path: str) -> DiskFault | None:
        return next(
            (
                fault
                for folder, fault in self.faults.items()
                if path == folder or path.startswith(folder + "/")
            ),
            None,
        )


class FaultyFile:
    """A file on one of them."""

    __slots__ = ("_disks", "_file", "_path")

    def __init__(self, disks: Disks, path: str, file: File) -> None:
        self._disks = disks
        self._path = path
        self._file = file

    def write(self, data: Buffer) -> int:
        self._disks.before_write(self._path)
        return self._file.write(data)

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._disks.before_read(self._path)
        return self._file.pread(size_bytes, position)

    def sync(self) -> None:
        self._disks.before_sync(self._path)
        self._file.sync()

    def truncate(self, size_bytes: int) -> None:
        self._disks.before_sync(self._path)
        self._file.truncate(size_bytes)

    def reserve(self, position: int, size_bytes: int) -> None:
        self._disks.before_write(self._path)
        self._file.reserve(position, size_bytes)

    def size(self) -> int:
        return self._file.size()

    def fileno(self) -> int:
        return self._file.fileno()


class FaultyFilesystem(RealFilesystem):
    """The disks of this machine, with those faults."""

    def __init__(self, disks: Disks) -> None:
        self._disks = disks

    def open(self, path: str) -> File:  # type: ignore[override]
        self._disks.before_read(path)
        return FaultyFile(self._disks, path, super().open(path))

    def create(self, path: str) -> File:  # type: ignore[override]
        self._disks.before_write(path)
        return FaultyFile(self._disks, path, super().create(path))

    def read_file(self, path: str) -> bytes:
        self._disks.before_read(path)
        return super().read_file(path)

    def write_file(self, path: str, content: Buffer) -> None:
        self._disks.before_write(path)
        super().write_file(path, content)

    def write_file_atomically(self, path: str, content: Buffer) -> None:
        self._disks.before_write(path)
        super().write_file_atomically(path, content)

    def sync_file(self, path: str) -> None:
        self._disks.before_sync(path)
        super().sync_file(path)

    def sync_directory(self, path: str) -> None:
        self._disks.before_sync(path)
        super().sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._disks.before_sync(source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._disks.before_sync(path)
        super().unlink(path)

    def mkdir(self, path: str) -> None:
        self._disks.before_write(path)
        super().mkdir(path)
