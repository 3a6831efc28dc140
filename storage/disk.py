"""The health of one log directory, shared by the logs in it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from storage.errors import LogDirFailure

logger = logging.getLogger(__name__)


class Disk:
    """After the first failure nothing is written here again.

    A failed write or sync is never tried again: the kernel may have dropped the dirty pages, and a second
    sync would then succeed without them. Like genuine Kafka, the broker goes on with its other directories.
    """

    __slots__ = ("failure", "on_failure", "path")

    def __init__(self, path: str, on_failure: Callable[[Disk], None] | None = None) -> None:
        self.path = path
        self.failure: LogDirFailure | None = None
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

    def check(self) -> None:
        """Raise LogDirFailure when the directory is offline."""
        if self.failure is not None:
            raise LogDirFailure(str(self.failure))
