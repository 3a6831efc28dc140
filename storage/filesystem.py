"""File system interface of the log store. Tests replace it with a simulated disk.

`RealFilesystem` is a thin layer over `os`. Its files write directly to the descriptor, which takes 5 µs for
16 KB; a buffering layer would double that. Durability is only what POSIX guarantees: bytes are durable after
`sync` of the file, names after `sync_directory` of the containing directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import struct
import sys
import threading
from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview

FALLOC_FL_KEEP_SIZE = 1
_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_COPY_STEP_BYTES = 16 * 1024 * 1024
_unsharing = threading.Lock()
TEMPORARY_SUFFIX = ".tmp"


class File(Protocol):
    """A file that is open for reading and appending. It is closed when its last reference is dropped."""

    def write(self, data: Buffer) -> int:
        """Append `data`. Return the number of bytes written: fewer after a signal, or if the disk is full."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read `size_bytes` starting at `position`. Fewer bytes are returned only at the end of the file."""

    def sync(self) -> None:
        """Make the content and size of the file durable."""

    def truncate(self, size_bytes: int) -> None: ...

    def reserve(self, position: int, size_bytes: int) -> None:
        """Reserve disk space beyond the end without changing the file's size. This may have no effect."""

    def size(self) -> int: ...

    def fileno(self) -> int:
        """Return the file descriptor, for sendfile. Raises OSError if the file has none."""


class FileLock(Protocol):
    """An exclusive lock on a file, which is held until it is released or the process ends."""

    def release(self) -> None: ...


class Filesystem(Protocol):
    """A file system. Paths are strings. Every method raises OSError as the operating system does."""

    def open(self, path: str) -> File:
        """Open an existing file for reading and appending."""

    def create(self, path: str) -> File:
        """Create an empty file, and open it for reading and appending."""

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, content: Buffer) -> None:
        """Create or replace a file, neither atomically nor durably. Other hard links keep the old content."""

    def write_file_atomically(self, path: str, content: Buffer) -> None:
        """Create or replace a file atomically and durably: after a crash, it has the old or the new content.
        A crash may leave a temporary file with a unique name (see `is_temporary`).
        """

    def sync_file(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def link(self, source: str, target: str) -> None:
        """Create a hard link to a file."""

    def unshare(self, path: str) -> None:
        """Durably replace a file that has other hard links with a copy, so that it may be changed in place.
        Do nothing if the file has no other links or is missing.
        """

    def unlink(self, path: str) -> None:
        """Remove a file if it exists."""

    def mkdir(self, path: str) -> None:
        """Create a directory with its parents if it does not exist."""

    def rmdir(self, path: str) -> None: ...

    def listdir(self, path: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def stamp(self, path: str) -> tuple[int, int]:
        """Return the size in bytes and the modification time in ns of a file or directory. The time changes
        when a file is written, and when an entry in a directory is added, removed or renamed.
        """

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def boot_id(self) -> str:
        """Return an ID of the machine's current boot, or an empty string if the system has no boot IDs."""

    def lock(self, path: str) -> FileLock | None:
        """Lock the file exclusively, creating it if it is missing. Return None if it is already locked."""


class OsFile:
    """A file that is closed when its last reference is dropped, so that deleted files stay readable."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def write(self, data: Buffer) -> int:
        return os.write(self.fd, data)

    def pread(self, size_bytes: int, position: int) -> bytes:
        return os.pread(self.fd, size_bytes, position)

    def sync(self) -> None:
        _fdatasync(self.fd)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self.fd, size_bytes)

    def reserve(self, position: int, size_bytes: int) -> None:
        fallocate = _find_fallocate()
        if fallocate is not None:
            fallocate(self.fd, FALLOC_FL_KEEP_SIZE, position, size_bytes)

    def size(self) -> int:
        # lseek takes a third of the time of fstat, and no code here depends on the descriptor's position.
        return os.lseek(self.fd, 0, os.SEEK_END)

    def fileno(self) -> int:
        return self.fd


class UnsyncedFile(OsFile):
    """A file that may be lost if the machine crashes."""

    __slots__ = ()

    def sync(self) -> None:
        """Do nothing."""


class OsFileLock:
    """A lock that belongs to a descriptor, so that it also excludes other brokers in the same process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealFilesystem:
    """The file system of this machine."""

    def __init__(self, *, syncs: bool = True) -> None:
        """Without `syncs`, nothing is durable: files survive the process, but not a crash of the machine."""
        self._syncs = syncs
        self._file = OsFile if syncs else UnsyncedFile

    def open(self, path: str) -> OsFile:
        return self._file(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC))

    def create(self, path: str) -> OsFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        return self._file(os.open(path, flags, 0o644))

    def read_file(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def write_file(self, path: str, content: Buffer) -> None:
        fd = os.open(path, _REPLACE, 0o666)
        try:
            shared = os.fstat(fd).st_nlink > 1
            if not shared:
                os.ftruncate(fd, 0)
                _write_fully(fd, content)
        finally:
            os.close(fd)
        if shared:
            os.unlink(path)
            self.write_file(path, content)

    def write_file_atomically(self, path: str, content: Buffer) -> None:
        temporary = temporary_name(path)
        try:
            with open(temporary, "xb", buffering=0) as file:
                _write_fully(file.fileno(), content)
                self._fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self.sync_directory(os.path.dirname(path))

    def _fsync(self, fd: int) -> None:
        if self._syncs:
            os.fsync(fd)

    def sync_file(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._fsync(fd)
        finally:
            os.close(fd)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def unshare(self, path: str) -> None:
        # Serialize calls, because a concurrent second call would replace the file again.
        with _unsharing:
            self._unshare(path)

    def _unshare(self, path: str) -> None:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return
        if found.st_nlink < 2:
            return
        temporary = temporary_name(path)
        try:
            with open(path, "rb", buffering=0) as source, open(temporary, "xb", buffering=0) as target:
                _copy(source.fileno(), target.fileno())
                os.utime(target.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
                self._fsync(target.fileno())
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self.sync_directory(os.path.dirname(path))

    def unlink(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def mkdir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def stamp(self, path: str) -> tuple[int, int]:
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def boot_id(self) -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id") as file:
                return file.read().strip()
        except OSError:
            return ""

    def lock(self, path: str) -> OsFileLock | None:
        import fcntl

        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                # This is the only kind of lock that conflicts with the POSIX lock taken by Java and is not
                # released when this process closes another descriptor of the same file.
                whole_file = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, whole_file)
            else:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        return OsFileLock(fd)


def temporary_name(path: str) -> str:
    """Return a unique name for a file that will replace `path`."""
    return f"{path}.{os.urandom(16).hex()}{TEMPORARY_SUFFIX}"


def is_temporary(name: str, of: str = "") -> bool:
    """Whether `name` names a temporary file and, if `of` is given, one that will replace `of`."""
    return name.endswith(TEMPORARY_SUFFIX) and (not of or name.startswith(f"{of}."))


def copy_file(source: str, target: str) -> None:
    """Copy `source` to the new file `target`. Raises OSError, for example if `target` exists."""
    with open(source, "rb", buffering=0) as read, open(target, "xb", buffering=0) as written:
        _copy(read.fileno(), written.fileno())


def _copy(source: int, target: int) -> None:
    while content := os.read(source, _COPY_STEP_BYTES):
        _write_fully(target, content)


def _write_fully(fd: int, content: Buffer) -> None:
    view = memoryview(content)
    while view:
        written_bytes = os.write(fd, view)
        view = view[written_bytes:]


@functools.cache
def _find_fallocate() -> Callable[[int, int, int, int], int] | None:
    # Use fallocate, which Python's os module does not have: os.posix_fallocate would extend the file.
    import ctypes

    if not sys.platform.startswith("linux"):
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate64
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    function.restype = ctypes.c_int
    return function


_fdatasync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
