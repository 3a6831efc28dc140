"""Reads that wait for more records in a set of partitions, for Fetch and other requests.

Rules
1. A read waits until its partitions together have received the missing number of bytes. Only committed bytes
   count, except for followers, for which all appended bytes count. The read then wakes its reader. A leader
   change and the deadline also wake the reader.
2. The reader reads again, and then completes the read or reports the number of bytes that are still missing.
3. A read is canceled when its client disconnects. The reader is not woken afterwards.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.deferred import Deferred
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition


class DelayedRead:
    """One read that waits for more records, according to the rules of this module."""

    __slots__ = (
        "_deferred",
        "_partitions",
        "_reads_uncommitted",
        "_seen",
        "_timer",
        "_waiting",
        "_wake",
        "has_expired",
        "missing_bytes",
    )

    def __init__(
        self, wake: Callable[[], None], waiting: set[DelayedRead], *, reads_uncommitted: bool = False
    ) -> None:
        """`wake` is called to read again. `waiting` is the set that contains this read while it waits."""
        self._wake: Callable[[], None] | None = wake
        self._waiting = waiting
        self._reads_uncommitted = reads_uncommitted
        self._deferred: Deferred | None = None
        self._partitions: Sequence[Partition] = ()
        self._seen: dict[Partition, tuple[int, int]] = {}
        """Log size and high watermark of each partition when it was read. Empty if any new byte suffices."""
        self._timer: TimerHandle | None = None
        self.missing_bytes = 0
        """Number of additional bytes after which the reader is woken."""
        self.has_expired = False
        """Whether the deadline has passed."""

    def start(self, partitions: Sequence[Partition], missing_bytes: int, max_wait_ms: int) -> Deferred:
        """Wait for more data in these partitions. Return the Deferred that `end` will return."""
        self._deferred = deferred = Deferred(self)
        self.missing_bytes = missing_bytes
        self._partitions = partitions
        for partition in partitions:
            (partition.append_listeners if self._reads_uncommitted else partition.listeners).add(self)
        if missing_bytes > 1:
            self._seen = {
                partition: (partition.log.size_bytes, partition.high_watermark) for partition in partitions
            }
        self._waiting.add(self)
        self._timer = asyncio.get_running_loop().call_later(max_wait_ms / 1000, self._expire)
        return deferred

    @property
    def is_over(self) -> bool:
        """Whether the read has stopped waiting."""
        return self._wake is None

    def end(self) -> Deferred | None:
        """Stop waiting, and return the Deferred to complete, or None if the read was canceled."""
        self._wake = None
        deferred = self._deferred
        self._deferred = None
        timer = self._timer
        if timer is not None:
            timer.cancel()
            self._timer = None
        for partition in self._partitions:
            (partition.append_listeners if self._reads_uncommitted else partition.listeners).discard(self)
        self._partitions = ()
        self._seen = {}
        self._waiting.discard(self)
        return deferred

    def cancel(self) -> None:
        """Stop waiting, because the client has disconnected."""
        self.end()

    def partition_changed(self, partition: Partition) -> None:
        """Wake the reader if enough bytes have arrived or this broker is no longer leader."""
        wake = self._wake
        if wake is None or (self._seen and partition.is_leader and self._lacks_more(partition)):
            return
        wake()

    def _expire(self) -> None:
        wake = self._wake
        if wake is not None:
            self.has_expired = True
            wake()

    def _lacks_more(self, partition: Partition) -> bool:
        """Subtract the bytes received since the last call from `missing_bytes`. Return whether any remain."""
        log = partition.log
        size, high_watermark = self._seen[partition]
        if self._reads_uncommitted or not partition.in_sync.followers:
            # Count all appended records: followers may read them, and without followers they are committed.
            self.missing_bytes -= max(log.size_bytes - size, 0)
        else:
            try:
                new = log.read(
                    high_watermark,
                    self.missing_bytes,
                    upper_bound=partition.high_watermark,
                    min_one_batch=True,
                )
            except StorageError:
                return False
            self.missing_bytes -= new.size_bytes if new is not None else 0
        self._seen[partition] = (log.size_bytes, partition.high_watermark)
        return self.missing_bytes > 0
