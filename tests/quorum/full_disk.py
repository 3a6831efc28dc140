"""A file system that can become full: writes then fail with ENOSPC."""

from __future__ import annotations

import errno
import os

from kafka_compat.storage.filesystem import Buffer, OsFile, RealFilesystem


class FullDisk(RealFilesystem):
    """The machine's file system. While `is_full`, nothing is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False

    def check(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, path: str) -> OsFile:
        file = super().open(path)
        return _File(os.dup(file.fd), self)

    def create(self, path: str) -> OsFile:
        self.check()
        file = super().create(path)
        return _File(os.dup(file.fd), self)

    def write_file(self, path: str, content: Buffer) -> None:
        self.check()
        super().write_file(path, content)

    def write_file_atomically(self, path: str, content: Buffer) -> None:
        self.check()
        super().write_file_atomically(path, content)


class _File(OsFile):
    __slots__ = ("_disk",)

    def __init__(self, fd: int, disk: FullDisk) -> None:
        super().__init__(fd)
        self._disk = disk

    def write(self, data: Buffer) -> int:
        self._disk.check()
        return super().write(data)
