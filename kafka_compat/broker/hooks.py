"""Replaceable system dependencies of a broker, such as the clock and the file system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.api.stages import Account, Middleware
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.directories.directory_worker import Worker
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.telemetry.pushed import PushedMetrics


class BrokerHooks:
    """Replaceable parts of a broker. None selects the default part or, if the part is optional, omits it."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        filesystem: Filesystem | None = None,
        scheduler: Scheduler | None = None,
        middleware: Sequence[Middleware] = (),
        accounts: Sequence[Account] = (),
        new_worker: Callable[[str], Worker] | None = None,
        pushed: PushedMetrics | None = None,
        syncs: bool = True,
    ) -> None:
        self.clock = clock
        self.filesystem = filesystem
        """The file system of the logs."""
        self.syncs = syncs
        """Whether data is synced to disk, so that it survives a crash of the machine. Used for the metadata
        journal and, without `filesystem`, for the logs.
        """
        self.scheduler = scheduler
        """The scheduler of the coordinators' timers."""
        self.middleware = middleware
        """Stages that requests pass through before their handlers."""
        self.accounts = accounts
        """Functions that are called for each completed request."""
        self.new_worker = new_worker
        """Function that creates the worker for the log directory at a path."""
        self.pushed = pushed
        """Receiver of metrics that clients push, or None if the broker does not serve the APIs of KIP-714."""
