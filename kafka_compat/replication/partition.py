"""A partition replica on this broker: its log, leadership, high watermark, and acknowledgement of writes.

Rules
1. Only the leader appends for clients. A record is committed once every in-sync replica has it (rules in
   `in_sync`). The high watermark is the offset up to which all records are committed, and consumers never
   read a record at or above it.
2. A replica "has" a record once the record is as durable as flush.messages requires: if flush.messages
   records are unflushed, the local end does not advance until they are flushed. Therefore, with
   flush.messages=1, no record is committed, returned or acknowledged before it is on disk, and a follower
   flushes before it fetches again.
3. A batch with acks=all is acknowledged when the high watermark passes it; with acks=1, when the local end
   does. If the ISR is then below min.insync.replicas, acks=all gets NOT_ENOUGH_REPLICAS_AFTER_APPEND.
4. The high watermark never decreases while a broker is leader. A follower adopts the leader's high watermark.
5. A state whose partition epoch is smaller than the known partition epoch is outdated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.replication.counts import Counts
from kafka_compat.replication.in_sync import NO_PEERS, InSyncReplicas, IsrAnswer, IsrProposer, Proposal
from kafka_compat.replication.waiters import (
    CallSoon,
    CommitCallback,
    OffsetWaiters,
    PartitionListeners,
    dismiss,
    pushed,
)
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.replication.flusher import Flushing
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.log.log import AppendInfo, Log
    from kafka_compat.storage.records.batch import Buffer
    from kafka_compat.storage.records.validation import ValidatedBatches

_NONE: Final = ErrorCode.NONE
"""A copy of ErrorCode.NONE, because access through the enumeration takes two lookups by name."""
log = logging.getLogger(__name__)

DEFAULT_LAG_TIME_MAX_MS: Final = 30_000
_FIRST_PRODUCE_WITH_FORMAT_2: Final = 3


class Partition:
    __slots__ = (
        "_alone",
        "_append_listeners",
        "_broker_counts",
        "_call_soon",
        "_commit_waiters",
        "_deletion_waiters",
        "_durable_waiters",
        "_flush_messages",
        "_flusher",
        "_listeners",
        "_monotonic_ms",
        "_moved",
        "_proposer",
        "counts",
        "durable_end_offset",
        "epoch_start_offset",
        "high_watermark",
        "in_sync",
        "is_leader",
        "is_under_min_isr",
        "lag",
        "leader_epoch",
        "leader_id",
        "local_id",
        "log",
        "partition",
        "partition_epoch",
        "topic",
    )

    def __init__(
        self,
        log: Log,
        local_id: int,
        flusher: Flushing,
        call_soon: CallSoon,
        *,
        monotonic_ms: Callable[[], int],
        proposer: IsrProposer | None = None,
        lag_time_max_ms: int | None = None,
        high_watermark: int = 0,
        moved: set[Partition] | None = None,
        counts: Counts | None = None,
    ) -> None:
        """`high_watermark` is the checkpointed value, and `monotonic_ms` a monotonic clock. The partition
        adds itself to `moved` whenever its high watermark changes. `counts` are the broker's counters.
        """
        self._call_soon = call_soon
        # Create these objects with the first listener, because most partitions of a large broker have none.
        self._listeners: PartitionListeners | None = None
        self._append_listeners: PartitionListeners | None = None
        self.topic = log.topic
        self.partition = log.partition
        self.log = log
        self.local_id = local_id
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = 0
        self.epoch_start_offset = 0
        """The log end offset when this broker became leader."""
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        self.durable_end_offset = log.log_end_offset
        self._commit_waiters: OffsetWaiters | None = None
        self._durable_waiters: OffsetWaiters | None = None
        self._deletion_waiters: OffsetWaiters | None = None
        self._proposer = proposer if proposer is not None else NO_PEERS
        if lag_time_max_ms is None:
            lag_time_max_ms = DEFAULT_LAG_TIME_MAX_MS
        self.in_sync = InSyncReplicas(local_id, lag_time_max_ms, self._proposer)
        self.is_under_min_isr = False
        self._alone = False
        """Whether this broker is leader, has no followers, and may commit. Appends then take a fast path."""
        self._flusher = flusher
        self._monotonic_ms = monotonic_ms
        self._moved: set[Partition] = moved if moved is not None else set()
        self._flush_messages = log.config.flush_messages
        self._broker_counts = counts if counts is not None else Counts()
        self.counts = self._broker_counts.topic(self.topic)
        self.lag = 0
        """Number of committed records that this follower lacked at the leader's last response."""

    def __repr__(self) -> str:
        return f"Partition({self})"

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas that the controller has confirmed. Empty unless this broker is leader."""
        return self.in_sync.committed

    @property
    def min_insync_replicas(self) -> int:
        """The number of in-sync replicas that acks=all requires, at most the number of replicas."""
        return self.in_sync.least

    @min_insync_replicas.setter
    def min_insync_replicas(self, replicas: int) -> None:
        self.in_sync.min_insync_replicas = replicas
        self._isr_changed()

    @property
    def known_high_watermark(self) -> int | None:
        """The high watermark, or None on a newly elected leader until its followers have fetched."""
        return None if self.epoch_start_offset > self.high_watermark else self.high_watermark

    @property
    def listeners(self) -> PartitionListeners:
        """Listeners for committed records, such as consumers' waiting fetches."""
        if self._listeners is None:
            self._listeners = PartitionListeners(self._call_soon)
        return self._listeners

    @property
    def append_listeners(self) -> PartitionListeners:
        """Listeners for appended records, committed or not, such as followers' waiting fetches."""
        if self._append_listeners is None:
            self._append_listeners = PartitionListeners(self._call_soon)
        return self._append_listeners

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset, up to which read_committed consumers may read."""
        return self.log.last_stable_offset(self.high_watermark)

    def check_min_isr(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if the ISR is too small for acks=all (min.insync.replicas)."""
        if self.is_under_min_isr:
            error = self.in_sync.too_few(str(self))
            self.counts.not_appended(error, 0)
            raise error

    # --- leadership

    def become_leader(
        self,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...] | None = None,
        partition_epoch: int = 0,
    ) -> bool:
        """Become leader in `leader_epoch`, and return whether this broker is a new leader.

        If no other replica is in sync, all stored records become committed. `replicas` are the brokers with a
        replica of the partition (default: `isr`). If `partition_epoch` is outdated, nothing is changed.
        """
        if partition_epoch < self.partition_epoch:
            return False
        is_new_leader = not self.is_leader
        self.in_sync.lead(isr if replicas is None else replicas, isr)
        if leader_epoch > self.leader_epoch:
            # Store the epoch even before its first record, so that a follower whose log has diverged can find
            # the offset of the divergence (KIP-279).
            end = self.epoch_start_offset = self.log.log_end_offset
            self.log.assign_leader_epoch(leader_epoch)
            self.in_sync.begin_epoch(self._monotonic_ms(), end, is_new_leader=is_new_leader)
            self.leader_epoch = leader_epoch
        self.is_leader = True
        self.leader_id = self.local_id
        self.partition_epoch = partition_epoch
        self._isr_changed()
        self._advance()
        return is_new_leader

    def become_follower(
        self, leader_id: int, leader_epoch: int, replicas: tuple[int, ...] = (), partition_epoch: int = 0
    ) -> bool:
        """Become follower of `leader_id` (-1 if there is no leader) in `leader_epoch`. Return whether the
        epoch is new, so that fetching restarts. If `partition_epoch` is outdated, nothing is changed.
        """
        if partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = leader_epoch > self.leader_epoch
        was_leader = self.is_leader
        self.is_leader = False
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.in_sync.follow(replicas)
        self._isr_changed()
        if was_leader or is_new_epoch:
            self._dismiss(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return is_new_epoch

    def resign(self, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Resign as leader, and fail the pending requests with `code`."""
        self.is_leader = False
        self._isr_changed()
        self._dismiss(code)

    def _dismiss(self, code: ErrorCode) -> None:
        dismiss((self._commit_waiters, self._durable_waiters, self._deletion_waiters), code)
        for listeners in (self._listeners, self._append_listeners):
            if listeners:
                listeners.notify(self)

    def check_leader_epoch(self, current_leader_epoch: int, leader_only: bool = True) -> ErrorCode:
        """Compare a client's leader epoch (-1 if unknown) with this replica's (KIP-320), and return an error
        code. With `leader_only`, a follower returns NOT_LEADER_OR_FOLLOWER (KIP-392).
        """
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            is_past = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if is_past else ErrorCode.UNKNOWN_LEADER_EPOCH
        if leader_only and not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _NONE

    # --- writing

    def append(
        self,
        data: Buffer,
        now_ms: int,
        produce_version: int | None = None,
        internal: bool = False,
        validated: ValidatedBatches | None = None,
    ) -> AppendInfo:
        """Append a batch from a client or, if `internal`, from a coordinator. `validated` is the return value
        of `Log.validate`. Raises KafkaError or StorageError if the batch is rejected.
        """
        counts = self.counts
        counts.produces += 1
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            info = self.log.append_as_leader(
                data, self.leader_epoch, now_ms, produce_version, internal, validated
            )
        except (KafkaError, StorageError) as error:
            counts.refused(error, len(data))
            raise
        records = info.last_offset - info.first_offset + 1
        counts.records_in += records
        counts.bytes_in += len(data)
        if produce_version is not None and produce_version < _FIRST_PRODUCE_WITH_FORMAT_2:
            counts.converted_in += records
        self._advance()
        if self._append_listeners:
            self._append_listeners.notify_soon(self)
        return info

    def when_committed(self, offset: int, callback: CommitCallback) -> None:
        """Call `callback` with NONE when the records below `offset` are committed, or with an error."""
        if self.high_watermark >= offset:
            callback(self._commit_code())
        else:
            self._commit_waiters = pushed(self._commit_waiters, offset, callback)

    def when_durable(self, offset: int, callback: CommitCallback) -> None:
        """Call `callback` with NONE when this replica has the records below `offset`, or with an error."""
        if self.durable_end_offset >= offset:
            callback(_NONE)
        else:
            self._durable_waiters = pushed(self._durable_waiters, offset, callback)

    def when_deleted(self, offset: int, callback: CommitCallback) -> None:
        """Call `callback` when the log of every live replica starts at `offset` or later (DeleteRecords)."""
        if self.low_watermark() >= offset:
            callback(_NONE)
        else:
            self._deletion_waiters = pushed(self._deletion_waiters, offset, callback)

    def configure(self, config: LogConfig, min_insync_replicas: int) -> None:
        """Apply changed topic settings."""
        self.log.update_config(config)
        self._flush_messages = config.flush_messages
        self.min_insync_replicas = min_insync_replicas
        self._advance()

    def replace_log(self, log: Log) -> None:
        """Switch to a log in another directory. The log has the same content, and the content is durable."""
        self.log = log
        self._flush_messages = log.config.flush_messages
        # Store the high watermark again, because the new directory's checkpoint does not contain it.
        self._moved.add(self)
        self._advance()

    # --- following

    def append_as_follower(self, data: memoryview, leader_high_watermark: int, leader_log_start: int) -> None:
        """Append batches from the leader, if any, and adopt the leader's high watermark and log start offset.

        Raises StorageError if the batches do not continue the log or are damaged, and KafkaError if this
        broker is leader.
        """
        if self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if len(data):
            self.log.append_as_follower(data)
            self.counts.replicated_bytes_in += len(data)
            self._advance()
        end = self.log.log_end_offset
        self.lag = max(leader_high_watermark - end, 0)
        high_watermark = min(max(leader_high_watermark, self.log.log_start_offset), end)
        if leader_log_start <= high_watermark:
            self.log.advance_log_start_offset(leader_log_start)
        if high_watermark != self.high_watermark:
            self._set_high_watermark(high_watermark)

    def truncate_to(self, offset: int) -> None:
        """Remove records that the leader lacks. Raises KafkaError if this broker leads, or StorageError."""
        if self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if offset < self.high_watermark:
            log.warning(
                "Truncated %s to offset %d, below its high watermark %d", self, offset, self.high_watermark
            )
        self.log.truncate_to(offset)
        self._truncated()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records, and restart the log at `offset`. Raises the same errors as `truncate_to`."""
        if self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.log.truncate_fully_and_start_at(offset)
        self._truncated()
        # The log is now empty, so no flush is needed before the next fetch.
        self.durable_end_offset = offset

    def _truncated(self) -> None:
        end = self.log.log_end_offset
        self.durable_end_offset = min(self.durable_end_offset, end)
        self.high_watermark = max(min(self.high_watermark, end), self.log.log_start_offset)
        self._moved.add(self)

    # --- followers, as seen by the leader

    def has_follower(self, broker_id: int) -> bool:
        """Return whether this broker is leader, and `broker_id` has a replica of the partition."""
        return broker_id in self.in_sync.followers

    def follower_fetched(
        self, follower_id: int, fetch_offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """Record a follower's fetch from `fetch_offset`, when the log ended at `leader_end_offset`."""
        state = self.in_sync.followers[follower_id]
        moved = state.log_end_offset != fetch_offset
        state.fetched(fetch_offset, log_start_offset, leader_end_offset, now_ms)
        isr = self.in_sync.expanded(follower_id, self.high_watermark, self.epoch_start_offset)
        if isr is not None:
            self._propose(isr)
        if moved:
            self._advance_high_watermark(now_ms)
        if self._deletion_waiters:
            self._deletion_waiters.release(self.low_watermark(), _NONE)

    def maybe_shrink_isr(self, now_ms: int) -> None:
        """Propose an ISR without lagging followers. Call this twice in every replica.lag.time.max.ms."""
        if not self.is_leader or self._alone:
            return
        isr = self.in_sync.shrunk(self.log.log_end_offset, now_ms)
        if isr is not None:
            log.info("Shrinking the ISR of %s from %s to %s", self, self.isr, isr)
            self._propose(isr)
        # The high watermark no longer waits for followers that are neither in sync nor caught up.
        self._advance_high_watermark(now_ms)

    def peers_changed(self) -> None:
        """Handle a change of the live brokers: the high and low watermarks wait only for live brokers."""
        if self.is_leader and not self._alone:
            self._advance_high_watermark(self._monotonic_ms())
            if self._deletion_waiters:
                self._deletion_waiters.release(self.low_watermark(), _NONE)

    def low_watermark(self) -> int:
        """Return the log start offset that all live replicas have reached (DeleteRecords)."""
        return self.in_sync.deleted_end(self.log.log_start_offset)

    def _propose(self, isr: tuple[int, ...]) -> None:
        leader_epoch, partition_epoch = self.leader_epoch, self.partition_epoch
        proposal = self.in_sync.pending = Proposal(isr, leader_epoch, partition_epoch)
        self._proposer.propose(
            self, isr, leader_epoch, partition_epoch, lambda answer: self._answered(proposal, answer)
        )

    def _answered(self, proposal: Proposal, answer: IsrAnswer) -> None:
        counts = self._broker_counts
        if answer.error != _NONE:
            counts.isr_refusals += 1
        if self.in_sync.pending is not proposal or not self.is_leader or answer.is_out_of_date:
            return  # A LeaderAndIsr request has changed or will change the state.
        if answer.is_for_now:
            code = answer.error.name
            log.warning(
                "The controller rejected the ISR %s of %s (%s); proposing it again", proposal.isr, self, code
            )
            self._propose(proposal.isr)
            return
        before = len(self.isr)
        if self.in_sync.apply_response(proposal, answer):
            self.partition_epoch = answer.partition_epoch
            log.info("Changed the ISR of %s to %s", self, answer.isr)
            counts.isr_shrinks += len(self.isr) < before
            counts.isr_expands += len(self.isr) > before
        self._isr_changed()
        self._advance_high_watermark(self._monotonic_ms())

    # --- progress

    def _isr_changed(self) -> None:
        self.is_under_min_isr = self.is_leader and len(self.isr) < self.min_insync_replicas
        self._alone = self.is_leader and not self.in_sync.followers and not self.is_under_min_isr

    def _advance(self) -> None:
        log = self.log
        end = log.log_end_offset
        if end - log.flushing.end_offset >= self._flush_messages:
            self._flusher.request(log, self.flushed)
            end = max(self.durable_end_offset, log.flushed_end_offset)
        self.durable_end_offset = end
        if self._durable_waiters:
            self._durable_waiters.release(end, _NONE)
        if self._alone:
            if end > self.high_watermark:
                self._set_high_watermark(end)
        elif self.is_leader:
            self._advance_high_watermark(self._monotonic_ms())

    def flushed(self, error: Exception | None) -> None:
        if error is not None:
            # Resign as leader: data may be missing on disk, and a later sync may succeed without writing it.
            self.resign(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._advance()

    def _advance_high_watermark(self, now_ms: int) -> None:
        if self.is_leader and not self.is_under_min_isr:
            end = self.in_sync.committed_end(self.durable_end_offset, self.log.log_end_offset, now_ms)
            if end > self.high_watermark:
                self._set_high_watermark(end)

    def _set_high_watermark(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self._moved.add(self)
        if self._commit_waiters:
            self._commit_waiters.release(high_watermark, self._commit_code())
        if self._listeners:
            self._listeners.notify_soon(self)

    def _commit_code(self) -> ErrorCode:
        if self.is_under_min_isr and len(self.in_sync.maximal) < self.min_insync_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return _NONE
