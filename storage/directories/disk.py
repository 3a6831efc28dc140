"""Health of one log directory: the failure, if any, that takes all of its logs offline."""

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
"""Errors that mean that the disk is full, or that the user's quota is exhausted."""
_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))
SHORTAGES = _DESCRIPTORS | {errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Errors that mean that the process or the machine lacks a resource, not the disk."""


TIMES_KEPT: Final = 512


class Disk:
    """The state of one disk. After the first failure, nothing is written to the disk.

    A failed write or sync is never retried: the kernel may have dropped the dirty pages, and a second sync
    would then succeed without them. As in Apache Kafka, the broker continues with its other directories.
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
        """The reason why the last write was rejected, unless the disk failed."""
        self.flushes = 0
        """The number of flushes, and the durations of the most recent ones."""
        self.flush_times_ms: deque[float] = deque(maxlen=TIMES_KEPT)
        self.recovery_points_moved = True
        """Whether the durable offset of a log may differ from its checkpoint."""
        self.log_starts_moved = True
        """Whether the start of a log may differ from its checkpoint."""
        self.on_failure = on_failure
        self.worker: Worker = worker if worker is not None else InlineWorker()
        """The worker for this directory's syncs."""

    def fail(self, error: OSError, doing: str) -> LogDirFailure | RefusedForNow:
        """Take the directory offline because of `error`, and return the exception to raise. A shortage of
        descriptors or memory is not a disk failure and may be temporary.
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
        """The exception for a write that failed without effect. A full disk is temporary; any other cause
        takes the directory offline.
        """
        if error.errno not in FULL or self.failure is not None:
            return self.fail(error, doing)
        return self._refused(DiskFull, f"log directory {self.path} is full: {doing}: {error}")

    def _refused(self, reason: type[RefusedForNow], message: str) -> RefusedForNow:
        refusal = reason(message)
        if self.refusing is not reason:
            self.refusing = reason
            logger.error("Rejected an operation: %s. More may be rejected until the shortage ends", refusal)
        return refusal

    def accepted(self) -> None:
        """Record a successful write, so that the next rejected write is logged again."""
        if self.refusing is not None:
            self.refusing = None
            logger.warning("Log directory %s accepts writes again", self.path)

    @contextlib.contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Take the directory offline if a read in the `with` block fails."""
        try:
            yield
        except OSError as error:
            raise self.fail(error, f"read of {what}") from error

    def check(self) -> None:
        """Raise LogDirFailure when the directory is offline."""
        if self.failure is not None:
            raise LogDirFailure(str(self.failure))


def _advice(error: OSError) -> str:
    if error.errno not in _DESCRIPTORS:
        return ""
    return " (the limit of open files, `ulimit -n`, is too low for this many logs and connections)"
