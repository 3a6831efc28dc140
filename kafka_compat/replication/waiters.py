"""Callbacks that run once a partition reaches an offset, and listeners for all changes of a partition.

Callbacks run while another client's records are appended. If a callback fails, the error is logged and does
not affect the append.
"""

import heapq
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from kafka_compat.errors import ErrorCode

log = logging.getLogger(__name__)

T = TypeVar("T")
CommitCallback = Callable[[ErrorCode], None]


class OffsetWaiters(list[tuple[int, int, CommitCallback]]):
    """A heap of (offset, sequence number, callback). It is a list, because a list's truth test is fast."""

    __slots__ = ("_pushed",)

    def __init__(self) -> None:
        super().__init__()
        self._pushed = 0

    def push(self, offset: int, callback: CommitCallback) -> None:
        """Call `callback` when `release` is called with `offset` or a higher offset."""
        self._pushed += 1
        heapq.heappush(self, (offset, self._pushed, callback))

    def release(self, end: int, code: ErrorCode) -> None:
        """Pass `code` to the callbacks waiting for offsets up to `end`."""
        while self and self[0][0] <= end:
            guarded(heapq.heappop(self)[2], code)


def pushed(waiters: OffsetWaiters | None, offset: int, callback: CommitCallback) -> OffsetWaiters:
    """Add a callback, and return the heap, which is created on demand: most partitions need no heap."""
    if waiters is None:
        waiters = OffsetWaiters()
    waiters.push(offset, callback)
    return waiters


def dismiss(kinds: Sequence[OffsetWaiters | None], code: ErrorCode) -> None:
    """Call all callbacks with `code`, whatever their offsets. Callbacks added by these calls are kept."""
    waiting = [waiters for waiters in kinds if waiters]
    callbacks = [callback for waiters in waiting for _, _, callback in waiters]
    for waiters in waiting:
        waiters.clear()
    for callback in callbacks:
        guarded(callback, code)


def guarded(callback: Callable[[T], None], argument: T) -> None:
    """Call `callback`, and log its error instead of raising it."""
    try:
        callback(argument)
    except Exception:
        log.exception("A callback of a delayed operation failed")


CallSoon = Callable[[Callable[[], None]], object]
Partition = Any
"""`partition.Partition`, which cannot be imported because its module imports this one."""


class PartitionListener(Protocol):
    """A reader that waits for more records of a partition."""

    def partition_changed(self, partition: Partition) -> None:
        """Handle new records or a leader change."""


class PartitionListeners(dict[PartitionListener, None]):
    """The listeners of one partition, in order of addition. A dict, because its truth test is fast."""

    __slots__ = ("_call_soon", "_is_pending")

    def __init__(self, call_soon: CallSoon) -> None:
        super().__init__()
        self._call_soon = call_soon
        self._is_pending = False

    def add(self, listener: PartitionListener) -> None:
        self[listener] = None

    def discard(self, listener: PartitionListener) -> None:
        self.pop(listener, None)

    def notify_soon(self, partition: Partition) -> None:
        """Notify all listeners in the next iteration of the event loop, so that the response to the producer
        is sent first, and simultaneous appends wake a reader only once.
        """
        if not self._is_pending:
            self._is_pending = True
            self._call_soon(partial(self.notify, partition))

    def notify(self, partition: Partition) -> None:
        self._is_pending = False
        for listener in list(self):
            guarded(listener.partition_changed, partition)
