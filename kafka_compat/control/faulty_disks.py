"""Simulated full, failed and slow disks for tests, in a layer between the log store and the file system.

Records can be read from a full or slow disk, but not from a failed one. Files written by other processes, and
the metadata journal, are not affected.
"""

import errno
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka_compat.broker import Broker
from kafka_compat.http.routes import NOT_FOUND, Answer, BadCall, Call, Route, integer
from kafka_compat.storage.filesystem import Buffer, File, RealFilesystem


class DiskFault(NamedTuple):
    """The simulated fault of a log directory."""

    is_full: bool = False
    """Whether writes fail with ENOSPC."""
    has_failed: bool = False
    """Whether reads and writes fail with EIO."""
    slow_ms: int = 0
    """Additional duration of each write and sync, in milliseconds."""


class Disks:
    """The simulated disk faults of a process's brokers, by log directory."""

    def __init__(self) -> None:
        self.faults: dict[str, DiskFault] = {}

    def before_write(self, path: str) -> None:
        """Raise OSError if the disk of `path` is full or has failed. If it is slow, block for `slow_ms`."""
        if self.faults and (fault := self._fault_of(path)) is not None:
            if fault.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            self._before(fault, path)

    def before_sync(self, path: str) -> None:
        """Raise OSError if the disk of `path` has failed. If it is slow, block for `slow_ms`."""
        if self.faults and (fault := self._fault_of(path)) is not None:
            self._before(fault, path)

    def before_read(self, path: str) -> None:
        """Raise OSError if the disk of `path` has failed."""
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
    """A file on a disk with simulated faults."""

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
    """The real file system with simulated faults."""

    def __init__(self, disks: Disks, *, syncs: bool = True) -> None:
        super().__init__(syncs=syncs)
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


_KINDS = ("full", "failed", "slow_ms")
_BODY = {
    "broker": "integer: only directories of this broker (default: all)",
    "log_dir": "string: only the directory with this path (default: all)",
    "full": "boolean: writes fail with ENOSPC until the fault is removed",
    "failed": "boolean: reads and writes fail with EIO; the directory then stays offline "
    "until the broker is restarted",
    "slow_ms": "integer: delay of each write and sync in milliseconds",
}


class DiskFaults:
    """Routes that list, set and remove disk faults. They respond with the faults of all log directories."""

    def __init__(self, brokers: Sequence[Broker], disks: Disks) -> None:
        self._brokers = brokers
        self._disks = disks

    def routes(self, prefix: str) -> list[Route]:
        path = prefix + "/disks"
        return [
            Route("GET", path, self._all, "log directories and their faults"),
            Route("POST", path, self._break, "make disks full, failing or slow", _BODY),
            Route("DELETE", path, self._lift, "remove all disk faults; offline directories stay offline"),
        ]

    async def _all(self, call: Call) -> Answer:
        return [
            {
                "broker": broker.broker_id,
                "log_dir": path,
                "is_offline": path in broker.services.log_dirs.offline,
                **_shown(self._disks.faults.get(path)),
            }
            for broker, path in self._paths()
        ]

    async def _break(self, call: Call) -> Answer:
        body = call.body
        given = [kind for kind in _KINDS if body.get(kind)]
        if len(given) != 1:
            raise BadCall(f"expected one of {', '.join(_KINDS)}, not {', '.join(given) or 'none'}")
        fault = DiskFault(
            is_full=body.get("full") is True,
            has_failed=body.get("failed") is True,
            slow_ms=integer(call, "slow_ms", least=1) if "slow_ms" in body else 0,
        )
        broker_id = integer(call, "broker", least=0) if "broker" in body else None
        log_dir = body.get("log_dir")
        meant = [
            path
            for broker, path in self._paths()
            if broker_id in (None, broker.broker_id) and log_dir in (None, path)
        ]
        if not meant:
            known = ", ".join(f"{path} of broker {broker.broker_id}" for broker, path in self._paths())
            raise BadCall(f"unknown log directory: expected one of {known}", NOT_FOUND)
        self._disks.faults.update(dict.fromkeys(meant, fault))
        return await self._all(call)

    async def _lift(self, call: Call) -> Answer:
        self._disks.faults.clear()
        return await self._all(call)

    def _paths(self) -> Iterator[tuple[Broker, str]]:
        for broker in self._brokers:
            for path in broker.services.log_dirs.directories:
                yield broker, path


def _shown(fault: DiskFault | None) -> dict[str, Any]:
    fault = fault or DiskFault()
    return {"full": fault.is_full, "failed": fault.has_failed, "slow_ms": fault.slow_ms}
