"""The health of one log directory, shared by the logs in it."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Iterator

from storage.errors import DiskFull, LogDirFailure

logger = logging.getLogger(__name__)

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
"""What the operating system says when there is no space left, or none for this user."""


class Disk:
    """After the first failure nothing is written here again.

    A failed write or sync is never tried again: the kernel may have dropped the dirty pages, and a second
    sync would then succeed without them. Like genuine Kafka, the broker goes on with its other directories.
    """

    __slots__ = ("failure", "full", "on_failure", "path")

    def __init__(self, path: str, on_failure: Callable[[Disk], None] | None = None) -> None:
        self.path = path
        self.failure: LogDirFailure | None = None
        self.full = False
        """Whether the last write was refused for want of space."""
        self.on_failure = on_failure

    def fail(self, error: OSError, doing: str) -> LogDirFailure:
        """Take the directory offline because of `error`; the exception to raise."""
        failure = LogDirFailure(f"log directory {self.path} is offline: {doing}: {error}")
        if self.failure is None:
            self.failure = failure
            logger.error("%s", failure)
            if self.on_failure is not None:
                self.on_failure(self)
        return failure

    def refuse(self, error: OSError, doing: str) -> LogDirFailure | DiskFull:
        """The exception for something that was not written and left everything as it was: a full disk may
        have space again later; for any other reason the directory goes offline.
        """
        if error.errno not in FULL or self.failure is not None:
            return self.fail(error, doing)
        refusal = DiskFull(f"log directory {self.path} is full: {doing}: {error}")
        if not self.full:
            self.full = True
            logger.error("%s. Writes are refused until there is space", refusal)
        return refusal

    def has_space(self) -> None:
        """Something was written: the next refusal is news again."""
        if self.full:
            self.full = False
            logger.warning("log directory %s has space again", self.path)

    @contextlib.contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Take the directory offline when a read in the block fails."""
        try:
            yield
        except OSError as error:
            raise self.fail(error, f"read of {what}") from error

    def check(self) -> None:
        """Raise LogDirFailure when the directory is offline."""
        if self.failure is not None:
            raise LogDirFailure(str(self.failure))
