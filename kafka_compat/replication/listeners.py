"""Listeners to every change of a partition, until they are removed: reads that wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from kafka_compat.replication.waiters import guarded

CallSoon = Callable[[Callable[[], None]], object]
Partition = Any
"""A `partition.Partition`, which imports this module."""


class PartitionListener(Protocol):
    """A reader that waits for more records of a partition."""

    def partition_changed(self, partition: Partition) -> None:
        """The partition has more records to read, or another leader."""


class PartitionListeners(dict[PartitionListener, None]):
    """The listeners of one partition, in the order in which they were added. True while there are any, as
    quickly as of any dictionary.
    """

    __slots__ = ("_call_soon", "_is_pending")

    def __init__(self, call_soon: CallSoon) -> None:
        super().__init__()
        self._call_soon = call_soon
        self._is_pending = False

    def add(self, listener: PartitionListener) -> None:
        """Notify it from now on."""
        self[listener] = None

    def discard(self, listener: PartitionListener) -> None:
        """Notify it no longer."""
        self.pop(listener, None)

    def notify_soon(self, partition: Partition) -> None:
        """Notify all in the next pass of the event loop: the producer's response leaves first, and appends
        that came together wake a reader once.
        """
        if not self._is_pending:
            self._is_pending = True
            self._call_soon(partial(self.notify, partition))

    def notify(self, partition: Partition) -> None:
        """Notify all now."""
        self._is_pending = False
        for listener in list(self):
            guarded(listener.partition_changed, partition)
