"""Health of one log directory. A disk failure takes all logs of the directory offline."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from kafka_compat.storage.directories.directory_worker import InlineWorker, Worker
from kafka_compat.storage.errors import DiskFull, LogDirFailure, OutOfResources, RefusedForNow

logger = logging.getLogger(__name__)

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
"""Error numbers for a full disk or an exhausted user quota."""
_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))
SHORTAGES = _DESCRIPTORS | {errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Error numbers for shortages in the process or the machine, which do not indicate a disk failure."""


TIMES_KEPT: Final = 512


class Disk:
    """The state of one disk. After the first failure, nothing is written to the disk.

    A failed write or sync is never retried: the kernel may have dropped the dirty pages, and a second sync
    would then succeed without writing them. As in Apache Kafka, the broker continues with its other
    directories.
    """

    __slots__ = (
        "failure",
        "flush_times_ms",
        "flushes",
        "log_starts_moved",
        "on_failure",
        "path",
        "recovery_points_moved",
        "refusing",
        "worker",
    )

    def __init__(
        self, path: str, on_failure: Callable[[Disk], None] | None = None, worker: Worker | None = None
    ) -> None:
        self.path = path
        self.failure: LogDirFailure | None = None
        self.refusing: type[RefusedForNow] | None = None
        """The class of the error that rejected the most recent operation, or None if writes succeed."""
        self.flushes = 0
        """The total number of flushes. `flush_times_ms` contains the durations of the most recent ones."""
        self.flush_times_ms: deque[float] = deque(maxlen=TIMES_KEPT)
        self.recovery_points_moved = True
        """Whether the recovery point of any log may differ from its checkpoint entry."""
        self.log_starts_moved = True
        """Whether the start offset of any log may differ from its checkpoint entry."""
        self.on_failure = on_failure
        self.worker: Worker = worker if worker is not None else InlineWorker()
        """The worker that syncs the files of this directory."""

    def fail(self, error: OSError, doing: str) -> LogDirFailure | RefusedForNow:
        """Take the directory offline because of `error`, and return the exception to raise. After a shortage
        of descriptors or memory, which may be temporary, the directory stays online.
        """
        if error.errno in SHORTAGES and self.failure is None:
            return self._refused(OutOfResources, f"{doing}: {error}{_advice(error)}")
        failure = LogDirFailure(f"log directory {self.path} is offline: {doing}: {error}")
        if self.failure is None:
            self.failure = failure
            logger.error("Log directory %s went offline (%s): %s. Check the disk", self.path, doing, error)
            if self.on_failure is not None:
                self.on_failure(self)
        return failure

    def refuse(self, error: OSError, doing: str) -> LogDirFailure | RefusedForNow:
        """Return the exception to raise after a write that failed without effect. If the disk is full, the
        directory stays online. Other errors are passed to `fail`.
        """
        if error.errno not in FULL or self.failure is not None:
            return self.fail(error, doing)
        return self._refused(DiskFull, f"log directory {self.path} is full: {doing}: {error}")

    def _refused(self, reason: type[RefusedForNow], message: str) -> RefusedForNow:
        refusal = reason(message)
        if self.refusing is not reason:
            self.refusing = reason
            logger.error(
                "Rejected an operation: %s. Free the resource, or more operations may be rejected", refusal
            )
        return refusal

    def accepted(self) -> None:
        """Record a successful write, so that the next rejected write is logged again."""
        if self.refusing is not None:
            self.refusing = None
            logger.warning("Log directory %s became writable again", self.path)

    @contextlib.contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """If a read in the `with` block raises OSError, raise the exception that `fail` returns."""
        try:
            yield
        except OSError as error:
            raise self.fail(error, f"read of {what}") from error

    def check(self) -> None:
        """Raise LogDirFailure if the directory is offline."""
        if self.failure is not None:
            raise LogDirFailure(str(self.failure))


def _advice(error: OSError) -> str:
    if error.errno not in _DESCRIPTORS:
        return ""
    return " (the limit of open files, `ulimit -n`, is too low for this many logs and connections)"
