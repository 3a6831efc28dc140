"""Replaceable system dependencies of a broker, such as the clock and the file system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.api.stages import Account, Middleware
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.directories.directory_worker import Worker
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.telemetry.pushed import PushedMetrics


@dataclass(slots=True, eq=False, repr=False)
class BrokerHooks:
    """Replaceable parts of a broker. None selects the default part or, if the part is optional, omits it."""

    clock: Clock | None = None
    filesystem: Filesystem | None = None
    """The file system of the logs."""
    scheduler: Scheduler | None = None
    """The scheduler of the coordinators' timers."""
    middleware: Sequence[Middleware] = ()
    """Stages that requests pass through before their handlers."""
    accounts: Sequence[Account] = ()
    """Functions that are called for each completed request."""
    new_worker: Callable[[str], Worker] | None = None
    """Function that creates the worker for the log directory at a path."""
    pushed: PushedMetrics | None = None
    """Receiver of metrics that clients push, or None if the broker does not serve the APIs of KIP-714."""
