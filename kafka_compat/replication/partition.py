"""One partition as this broker holds it: its log, who leads it, and how far it is committed.

Rules
1. The leader alone appends for clients. A record is committed once every in-sync replica has it; the high
   watermark is the offset up to which all records are committed, and consumers see no record at or above it.
2. A replica "has" a record of its own log when the record is as durable as flush.messages asks: where
   flush.messages records would be unflushed, the local end waits for the flush. So with flush.messages=1
   nothing is committed, shown or acknowledged before it is on disk.
3. acks=all is answered when the high watermark passes the batch, acks=1 when the local end does.
4. The high watermark never goes backwards while a leader leads.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from itertools import count
from typing import Protocol, TypeVar

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.replication.flusher import Flusher
from storage.config import LogConfig
from storage.log import AppendInfo, Log

log = logging.getLogger(__name__)

T = TypeVar("T")
CommitCallback = Callable[[ErrorCode], None]
CallSoon = Callable[[Callable[[], None]], object]


class CommitListener(Protocol):
    """Someone who waits for more committed records, such as a parked fetch."""

    def on_committed(self, partition: Partition) -> None: ...


class Partition:
    """See the rules above."""

    __slots__ = (
        "_call_soon",
        "_commit_waiters",
        "_durable_waiters",
        "_flush_messages",
        "_flusher",
        "_order",
        "_telling",
        "durable_end_offset",
        "high_watermark",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "listeners",
        "local_id",
        "log",
        "min_insync_replicas",
        "partition",
        "topic",
    )

    def __init__(self, log: Log, local_id: int, flusher: Flusher, call_soon: CallSoon) -> None:
        self.topic = log.topic
        self.partition = log.partition
        self.log = log
        self.local_id = local_id
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.min_insync_replicas = 1
        self.high_watermark = log.log_start_offset
        self.durable_end_offset = log.log_end_offset
        self.listeners: set[CommitListener] = set()
        self._flusher = flusher
        self._call_soon = call_soon
        self._telling = False
        self._flush_messages = log.config.flush_messages
        self._order = count()
        self._commit_waiters: list[tuple[int, int, CommitCallback]] = []
        self._durable_waiters: list[tuple[int, int, CommitCallback]] = []

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers may see: no open transaction starts below it."""
        return self.log.last_stable_offset(self.high_watermark)

    def check_min_isr(self) -> None:
        """Raises KafkaError(NOT_ENOUGH_REPLICAS) when acks=all cannot be kept (min.insync.replicas)."""
        if len(self.isr) < self.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {len(self.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {self.min_insync_replicas} for partition {self.topic}-{self.partition}",
            )

    # --- leadership

    def become_leader(self, leader_epoch: int, isr: tuple[int, ...]) -> None:
        """Lead from `leader_epoch` on. With no other replica in sync, all that is stored is committed."""
        self.is_leader = True
        self.leader_id = self.local_id
        self.leader_epoch = leader_epoch
        self.isr = isr
        self._advance()

    def resign(self, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Stop leading: everyone who waits here is told to look for the new leader."""
        self.is_leader = False
        waiters = self._commit_waiters + self._durable_waiters
        self._commit_waiters = []
        self._durable_waiters = []
        for _, _, callback in waiters:
            _guarded(callback, code)
        self._tell_listeners()

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Compare the epoch a client believes in (-1: it does not say) with ours (KIP-320)."""
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    # --- writing

    def append(
        self, data: memoryview, now_ms: int, produce_version: int | None = None, internal: bool = False
    ) -> AppendInfo:
        """Append a client's batch, or a coordinator's own (`internal`). Raises KafkaError or StorageError."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        info = self.log.append_as_leader(
            data,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            produce_version=produce_version,
            internal=internal,
        )
        self._advance()
        return info

    def when_committed(self, offset: int, callback: CommitCallback) -> None:
        """Call back once every record below `offset` is committed, or with an error when leadership ends
        first.
        """
        if self.high_watermark >= offset:
            callback(ErrorCode.NONE)
        else:
            heapq.heappush(self._commit_waiters, (offset, next(self._order), callback))

    def when_durable(self, offset: int, callback: CommitCallback) -> None:
        """The same for this replica alone (acks=1)."""
        if self.durable_end_offset >= offset:
            callback(ErrorCode.NONE)
        else:
            heapq.heappush(self._durable_waiters, (offset, next(self._order), callback))

    def configure(self, config: LogConfig, min_insync_replicas: int) -> None:
        """Take over changed settings of the topic."""
        self.log.update_config(config)
        self.min_insync_replicas = min_insync_replicas
        self._flush_messages = config.flush_messages
        self._advance()

    def _advance(self) -> None:
        log = self.log
        end = log.log_end_offset
        if end - log.flushed_end_offset >= self._flush_messages:
            self._flusher.request(log, self.flushed)
            end = max(self.durable_end_offset, log.flushed_end_offset)
        self._set_durable_end(end)

    def flushed(self, error: Exception | None) -> None:
        if error is not None:
            # Nobody knows what reached the disk; a later sync may falsely succeed, so this replica is done.
            self.resign(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._advance()

    def _set_durable_end(self, end: int) -> None:
        self.durable_end_offset = end
        if self._durable_waiters:
            _release(self._durable_waiters, end)
        # The only in-sync replica is this one until followers report their ends.
        if self.is_leader and end > self.high_watermark:
            self.high_watermark = end
            if self._commit_waiters:
                _release(self._commit_waiters, end)
            if self.listeners and not self._telling:
                # Not from here: the producer's answer leaves first, and appends that came together wake a
                # reader once.
                self._telling = True
                self._call_soon(self._tell_listeners)

    def _tell_listeners(self) -> None:
        self._telling = False
        for listener in list(self.listeners):
            _guarded(listener.on_committed, self)


def _release(waiters: list[tuple[int, int, CommitCallback]], end: int) -> None:
    while waiters and waiters[0][0] <= end:
        _guarded(heapq.heappop(waiters)[2], ErrorCode.NONE)


def _guarded(callback: Callable[[T], None], argument: T) -> None:
    """Those who wait are called from the append of another client, who must not pay for their failure."""
    try:
        callback(argument)
    except Exception:
        log.exception("someone who waited for a commit failed")
