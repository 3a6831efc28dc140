"""The transaction coordinator: runs the machines of all transactional ids of the shards that this broker
leads.

It finds the transaction, hands it the event, appends what it wants written, sends its markers, and answers.
Each answer goes to the callback that came with the request: at once, or when the record it depends on is
committed. Callbacks are called exactly once, also when the shard or the broker goes away.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, cast

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.coordinator_log import CoordinatorLog
from kafka_compat.groups.scheduler import Scheduler, TimerHandle, run_in_steps
from kafka_compat.groups.shards import shard_of
from kafka_compat.processor import offer_core
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.transactions.machine import Transaction
from kafka_compat.transactions.marker_writer import Marker, MarkerWriter
from kafka_compat.transactions.model import (
    NO_PRODUCER_ID,
    IdentityResult,
    Output,
    ProducerIdentity,
    Status,
    TopicPartition,
    TransactionSettings,
    TransactionState,
)
from kafka_compat.transactions.records import decode_record, encode_record

log = logging.getLogger(__name__)

"""How many records of a shard are loaded before others get their turn on the event loop."""
_RETRY_MS: Final = 100
"""When to try again what a partition or the log refused for now."""

_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
_MARKER_NOT_NEEDED: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})


class Overview(NamedTuple):
    """One transactional id as ListTransactions and DescribeTransactions show it."""

    transactional_id: str
    status: Status


@dataclass(slots=True, eq=False)
class _Hosted:
    """A transactional id that runs here. `awaiting` are the partitions without their marker yet."""

    transaction: Transaction
    shard: _Shard
    awaiting: set[TopicPartition] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Shard:
    """A partition of `__transaction_state` that this broker leads, in `leader_epoch`."""

    index: int
    leader_epoch: int
    loading: bool = True
    hosted: dict[str, _Hosted] = field(default_factory=dict)


class TransactionCoordinator:
    """All transactional ids of one broker. `now_ms` is the time of day."""

    def __init__(
        self,
        *,
        coordinator_log: CoordinatorLog,
        markers: MarkerWriter,
        scheduler: Scheduler,
        settings: TransactionSettings,
        now_ms: Callable[[], int],
    ) -> None:
        self._log = coordinator_log
        self._markers = markers
        self._scheduler = scheduler
        self._settings = settings
        self._version = settings.transaction_version
        self._now_ms = now_ms
        self._shards: dict[int, _Shard] = {}
        self._timers: dict[str, TimerHandle] = {}
        self._closed = False

    # Life

    def start(self) -> None:
        """Begin to look for transactions past their timeout, and for ids that nobody has used for long."""
        self._look_for_timeouts()
        self._look_for_expired()

    def close(self) -> None:
        """Stop all timers; afterwards every request is COORDINATOR_NOT_AVAILABLE."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for index in list(self._shards):
            self.unload(index)

    def load(self, index: int, leader_epoch: int) -> None:
        """This broker has become the leader of a shard. A long log is read in steps; until then it is
        loading. Transactions that were decided are completed.
        """
        self.unload(index)
        shard = self._shards[index] = _Shard(index, leader_epoch)
        work = self._loading(shard)

        def is_wanted() -> bool:
            return shard.loading and self._shards.get(index) is shard

        def on_error(error: KafkaError) -> None:
            log.error("__transaction_state-%d: it cannot be loaded: %s", index, error)
            self.unload(index)

        # Not at once: a broker that starts leads this shard before the partitions that want markers.
        self._scheduler.call_later(0, lambda: run_in_steps(self._scheduler, work, is_wanted, on_error))

    def _loading(self, shard: _Shard) -> Iterator[None]:
        """All the work of loading, in pieces of about one record."""
        latest: dict[bytes, bytes | None] = {}
        count = 0
        for batch in self._log.replay(shard.index):
            latest.update(batch.records)
            count += len(batch.records)
            yield from itertools.repeat(None, len(batch.records))
        for key, value in latest.items():
            try:
                record = decode_record(key, value)
            except MalformedRequest as error:
                log.warning("__transaction_state-%d: a record cannot be read: %s", shard.index, error)
                continue
            if record is not None and record[1] is not None:
                self._host(shard, Transaction(record[0], record[1], self._version))
            yield
        shard.loading = False
        if count:
            log.info(
                "__transaction_state-%d: loaded %d ids from %d records",
                shard.index,
                len(shard.hosted),
                count,
            )
        for hosted in list(shard.hosted.values()):
            self._carry_out(hosted, hosted.transaction.resume(self._now_ms()))

    def unload(self, index: int) -> None:
        """This broker no longer leads a shard. Who waits for a record is answered by the log."""
        self._shards.pop(index, None)

    # Requests of producers

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether `init_producer_id` or `end_and_bump` is to be given a new producer id."""
        hosted, error = self._find(transactional_id)
        return not error and (hosted is None or hosted.transaction.needs_producer_id)

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: int,
        respond: Callable[[IdentityResult], None],
    ) -> None:
        """InitProducerId of a transactional id; `new_producer_id` is -1 when none was needed."""
        now_ms = self._now_ms()
        hosted, error = self._find(transactional_id)
        if transactional_id and not 0 < timeout_ms <= self._settings.transaction_max_timeout_ms:
            error = ErrorCode.INVALID_TRANSACTION_TIMEOUT
        if not error and hosted is None:
            if new_producer_id == NO_PRODUCER_ID:
                # The id was forgotten a moment ago: the producer asks again.
                error = ErrorCode.CONCURRENT_TRANSACTIONS
            else:
                created = Transaction.new(
                    transactional_id, new_producer_id, timeout_ms, now_ms, self._version
                )
                hosted = self._host(self._shards[self._shard_of(transactional_id)], created)
        if error or hosted is None:
            respond(IdentityResult(error))
            return
        out = hosted.transaction.init_producer_id(timeout_ms, expected, new_producer_id, respond, now_ms)
        self._carry_out(hosted, out)

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        respond: Callable[[ErrorCode], None],
        client_version: int = 0,
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn: all of the partitions share their fate."""
        hosted, error = self._find_known(transactional_id)
        if error or hosted is None:
            respond(error)
        else:
            out = hosted.transaction.add_partitions(
                identity, frozenset(partitions), respond, self._now_ms(), client_version
            )
            self._carry_out(hosted, out)

    def verify(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Whether the partitions are in the transaction that the producer has open (KIP-890 part 1)."""
        hosted, error = self._find_known(transactional_id)
        return error if error or hosted is None else hosted.transaction.verify(identity, partitions)

    def end(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        committed: bool,
        respond: Callable[[IdentityResult], None],
    ) -> None:
        """EndTxn; answered when the decision is committed, the markers follow."""
        hosted, error = self._find_known(transactional_id)
        if error or hosted is None:
            respond(IdentityResult(error))
        else:
            out = hosted.transaction.end(identity, committed, respond, self._now_ms())
            self._carry_out(hosted, out)

    def end_and_bump(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        committed: bool,
        new_producer_id: int,
        respond: Callable[[IdentityResult], None],
    ) -> None:
        """EndTxn of transaction.version 2; `new_producer_id` is -1 when none was needed."""
        hosted, error = self._find_known(transactional_id)
        if error or hosted is None:
            respond(IdentityResult(error))
        else:
            out = hosted.transaction.end_and_bump(
                identity, committed, new_producer_id, respond, self._now_ms()
            )
            self._carry_out(hosted, out)

    # Administration

    def describe(self, transactional_id: str) -> tuple[ErrorCode, Status | None]:
        """DescribeTransactions of one id."""
        hosted, error = self._find(transactional_id)
        if not error and hosted is None:
            error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return error, None if hosted is None else hosted.transaction.status

    def list_transactions(
        self, states: set[str], producer_ids: set[int], duration_ms: int
    ) -> tuple[ErrorCode, list[Overview]]:
        """ListTransactions; empty filters pass all, `duration_ms` only what runs for longer (-1: all)."""
        if self._closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        if any(shard.loading for shard in self._shards.values()):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, []
        now_ms = self._now_ms()
        return ErrorCode.NONE, [
            Overview(transactional_id, status)
            for shard in self._shards.values()
            for transactional_id, hosted in shard.hosted.items()
            for status in (hosted.transaction.status,)
            if (not states or status.state in states)
            and (not producer_ids or status.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - status.start_ms > duration_ms)
        ]

    # The clock

    def _look_for_timeouts(self) -> None:
        self._timers["timeouts"] = self._scheduler.call_later(
            self._settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            self._look_for_timeouts,
        )
        now_ms = self._now_ms()
        for hosted in self._all():
            if hosted.transaction.is_timed_out(now_ms):
                self._carry_out(hosted, hosted.transaction.abort_timed_out(now_ms))

    def _look_for_expired(self) -> None:
        self._timers["expired"] = self._scheduler.call_later(
            self._settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            self._look_for_expired,
        )
        now_ms = self._now_ms()
        for hosted in self._all():
            out = hosted.transaction.expire(now_ms, self._settings.transactional_id_expiration_ms)
            self._carry_out(hosted, out)

    def _all(self) -> list[_Hosted]:
        return [
            hosted for shard in self._shards.values() if not shard.loading for hosted in shard.hosted.values()
        ]

    # Running the machines

    def _shard_of(self, transactional_id: str) -> int:
        return shard_of(transactional_id, self._log.shard_count)

    def _find(self, transactional_id: str) -> tuple[_Hosted | None, ErrorCode]:
        """The id, or None with NONE when nobody has used it yet, or why this broker does not speak for it."""
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        if self._closed:
            return None, ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard = self._shards.get(self._shard_of(transactional_id)) if self._log.shard_count else None
        if shard is None:
            return None, ErrorCode.NOT_COORDINATOR
        if shard.loading:
            return None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return shard.hosted.get(transactional_id), ErrorCode.NONE

    def _find_known(self, transactional_id: str) -> tuple[_Hosted | None, ErrorCode]:
        hosted, error = self._find(transactional_id)
        if not error and hosted is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return hosted, error

    def _host(self, shard: _Shard, transaction: Transaction) -> _Hosted:
        hosted = shard.hosted[transaction.transactional_id] = _Hosted(transaction, shard)
        return hosted

    def _is_here(self, hosted: _Hosted) -> bool:
        return self._shards.get(hosted.shard.index) is hosted.shard

    def _carry_out(self, hosted: _Hosted, out: Output) -> None:
        transaction = hosted.transaction
        for note in out.notes:
            log.info("transactional id %s: %s", transaction.transactional_id, note)
        for waiter, result in out.responses:
            cast("Callable[[Any], None]", waiter)(result)
        if out.write is not None:
            self._write(hosted, out.write.status)
        if out.markers is not None:
            marker = Marker(
                out.markers.identity,
                out.markers.committed,
                hosted.shard.leader_epoch,
                out.markers.bumped_epoch,
            )
            hosted.awaiting = set(out.markers.partitions)
            # The producer waits for the decision only: its answer leaves first.
            self._scheduler.call_later(0, partial(self._send, hosted, marker))
        if out.retry_completion:
            self._scheduler.call_later(_RETRY_MS, partial(self._complete, hosted))
        if transaction.state is TransactionState.DEAD:
            hosted.shard.hosted.pop(transaction.transactional_id, None)

    def _write(self, hosted: _Hosted, status: Status | None) -> None:
        shard = hosted.shard.index
        try:
            record = encode_record(hosted.transaction.transactional_id, status, self._version)
            end_offset = self._log.append(shard, [record])
        except KafkaError as error:
            self._written(hosted, error.code)
        except ValueError as error:
            log.warning("a transactional id cannot be written: %s", error)
            self._written(hosted, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._log.when_committed(shard, end_offset, partial(self._written, hosted))

    def _written(self, hosted: _Hosted, error: ErrorCode) -> None:
        if not error and not self._is_here(hosted):
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._carry_out(hosted, hosted.transaction.written(error, self._now_ms()))

    # Markers

    def _send(self, hosted: _Hosted, marker: Marker) -> None:
        if not self._is_here(hosted):
            return
        offer_core()
        for partition in [item for item in hosted.awaiting if not self._markers.exists(item)]:
            # Its topic was deleted, and the transaction's records with it.
            hosted.awaiting.discard(partition)
        if hosted.awaiting:
            # Once more: the thread that was woken first has woken the next one.
            offer_core()
            self._markers.write(marker, sorted(hosted.awaiting), partial(self._sent, hosted, marker))
        else:
            self._complete(hosted)

    def _sent(self, hosted: _Hosted, marker: Marker, partition: TopicPartition, error: ErrorCode) -> None:
        if error in _FENCED:
            # A newer coordinator has taken over, and completes the transaction.
            log.info(
                "transactional id %s: the marker for %s-%d is refused: %s",
                hosted.transaction.transactional_id,
                *partition,
                error.name,
            )
        elif error in _MARKER_NOT_NEEDED:
            hosted.awaiting.discard(partition)
            if not hosted.awaiting:
                self._complete(hosted)
        else:
            retry = partial(self._send_again, hosted, marker, partition)
            self._scheduler.call_later(_RETRY_MS, retry)

    def _send_again(self, hosted: _Hosted, marker: Marker, partition: TopicPartition) -> None:
        if not self._is_here(hosted):
            return
        if self._markers.exists(partition):
            self._markers.write(marker, [partition], partial(self._sent, hosted, marker))
        else:
            self._sent(hosted, marker, partition, ErrorCode.NONE)

    def _complete(self, hosted: _Hosted) -> None:
        if self._is_here(hosted):
            offer_core()
            self._carry_out(hosted, hosted.transaction.markers_written())
