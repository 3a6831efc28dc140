"""The way of one transaction's markers to its partitions, until each has its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
from kafka_compat.coordinator_runtime.shard import RunningMachine
from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.marker_writer import Marker, MarkerWriter
from kafka_compat.transactions.status import Markers, StatusRecord, TopicPartition
from kafka_compat.transactions.transaction import Transaction

log = logging.getLogger(__name__)

RETRY_MS: Final = 100
"""When to try again what a partition or the log refused for now."""

_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
_MARKER_NOT_NEEDED: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})


_sched_yield = getattr(os, "sched_yield", lambda: None)


def offer_core() -> None:
    """Let a thread that waits for this core run first, if there is one.

    For work that goes on after a response has left. On a machine with few cores the client's threads, which
    the response wakes one after the other, may be queued behind the broker's; Linux would leave them there
    until the broker sleeps or has used its time slice of some milliseconds. An idle core makes this cost a
    microsecond, a busy one such a slice, so it is for a few places only.
    """
    _sched_yield()


class MarkerDelivery:
    """`awaiting` are the partitions without their marker yet; when there are none, `complete` is called. It
    is given up when the coordinator's shard goes away: the next coordinator begins anew.
    """

    def __init__(
        self,
        running: RunningMachine[Transaction],
        markers: Markers,
        writer: MarkerWriter,
        runtime: CoordinatorRuntime[Transaction, StatusRecord],
        complete: Callable[[RunningMachine[Transaction]], None],
    ) -> None:
        self._running = running
        self._marker = Marker(
            markers.identity, markers.committed, running.shard.leader_epoch, markers.bumped_epoch
        )
        self._awaiting = set(markers.partitions)
        self._writer = writer
        self._runtime = runtime
        self._complete = complete

    def send(self) -> None:
        """To all partitions that still exist."""
        if not self._runtime.is_running(self._running):
            return
        offer_core()
        for partition in [item for item in self._awaiting if not self._writer.exists(item)]:
            # Its topic was deleted, and the transaction's records with it.
            self._awaiting.discard(partition)
        if self._awaiting:
            # Once more: the thread that was woken first has woken the next one.
            offer_core()
            self._writer.write(self._marker, sorted(self._awaiting), self._sent)
        else:
            self._complete(self._running)

    def _sent(self, partition: TopicPartition, error: ErrorCode) -> None:
        if error in _FENCED:
            # A newer coordinator has taken over, and completes the transaction.
            log.info(
                "transactional id %s: the marker for %s-%d is refused: %s",
                self._running.key,
                *partition,
                error.name,
            )
        elif error in _MARKER_NOT_NEEDED:
            self._awaiting.discard(partition)
            if not self._awaiting:
                self._complete(self._running)
        else:
            self._runtime.timers.call_later(RETRY_MS, partial(self._send_again, partition))

    def _send_again(self, partition: TopicPartition) -> None:
        if not self._runtime.is_running(self._running):
            return
        if self._writer.exists(partition):
            self._writer.write(self._marker, [partition], self._sent)
        else:
            self._sent(partition, ErrorCode.NONE)
