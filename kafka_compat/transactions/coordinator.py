"""The transaction coordinator: the transactional IDs in this broker's shards of `__transaction_state`.

Requests are passed to the state machines of their transactional IDs. The runtime loads and stores the state
machines, and a MarkerWriter writes the markers. Each response is passed to the callback of its request,
immediately or when its record is committed. Each callback is called exactly once, even if this broker loses
the shard or shuts down.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import CoordinatorLog
from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
from kafka_compat.coordinator_runtime.scheduler import Scheduler
from kafka_compat.coordinator_runtime.shard import RunningMachine
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from kafka_compat.transactions.marker_writer import Marker, MarkerWriter
from kafka_compat.transactions.records import decode_record, encode_record
from kafka_compat.transactions.status import (
    NO_PRODUCER_ID,
    IdentityResult,
    Markers,
    ProducerIdentity,
    RetryCompletion,
    Status,
    StatusRecord,
    TopicPartition,
)
from kafka_compat.transactions.transaction import Transaction

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig


log = logging.getLogger(__name__)

RETRY_MS: Final = 100
"""Backoff in milliseconds before a marker or a status record is written again after an error."""

_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
_MARKER_NOT_NEEDED: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})

_sched_yield = getattr(os, "sched_yield", lambda: None)


def offer_core() -> None:
    """Yield the processor core to a waiting thread, if there is one.

    Call this before work that continues after a response was sent. The response wakes the client's threads,
    one after another. On a machine with few cores, Linux may queue them behind the broker's thread, and leave
    them there until the broker sleeps or has used its time slice of a few milliseconds. The call costs a
    microsecond on an idle core and a time slice on a busy one, so only a few places call it.
    """
    _sched_yield()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Broker settings for transactions, with Kafka's names and defaults."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_version: int = 0
    """The level of the feature transaction.version."""


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    return TransactionSettings(
        transaction_max_timeout_ms=config.int("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=config.int("transactional.id.expiration.ms"),
        transaction_abort_timed_out_transaction_cleanup_interval_ms=config.int(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        transaction_remove_expired_transaction_cleanup_interval_ms=config.int(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
    )


class Overview(NamedTuple):
    """The status of one transactional ID, as returned by ListTransactions and DescribeTransactions."""

    transactional_id: str
    status: Status


class MarkerDelivery:
    """Delivery of one transaction's markers to its partitions. `complete` is called when every partition has
    its marker. If the shard moves, this delivery ends, and the new coordinator delivers the markers again.
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
        """Send the marker to all partitions that still exist."""
        if not self._runtime.is_running(self._running):
            return
        offer_core()
        for partition in [item for item in self._awaiting if not self._writer.exists(item)]:
            # The topic was deleted, together with the transaction's records.
            self._awaiting.discard(partition)
        if self._awaiting:
            # Yield again: the client thread that got the response may have woken another client thread.
            offer_core()
            self._writer.write(self._marker, sorted(self._awaiting), self._sent)
        else:
            self._complete(self._running)

    def _sent(self, partition: TopicPartition, error: ErrorCode) -> None:
        if error in _FENCED:
            # A newer coordinator has taken over. It completes the transaction.
            log.info(
                "Could not write the transaction marker for transactional ID %s to %s-%d: %s",
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


class TransactionCoordinator:
    """The transactional IDs that one broker coordinates. `now_ms` returns the time of day."""

    def __init__(
        self,
        *,
        coordinator_log: CoordinatorLog,
        markers: MarkerWriter,
        scheduler: Scheduler,
        settings: TransactionSettings,
        now_ms: Callable[[], int],
    ) -> None:
        self._markers = markers
        self._scheduler = scheduler
        self._settings = settings
        self._version = settings.transaction_version
        self._now_ms = now_ms
        self._runtime: CoordinatorRuntime[Transaction, StatusRecord] = CoordinatorRuntime(
            topic=TRANSACTIONS_TOPIC,
            noun="transactional ID",
            coordinator_log=coordinator_log,
            scheduler=scheduler,
            now_ms=now_ms,
            new_machine=lambda transactional_id, snapshots: Transaction(
                transactional_id, snapshots, self._version
            ),
            encode=lambda record: encode_record(record, self._version),
            decode=decode_record,
            perform=self._perform,
        )
        self._running = self._runtime.running

    def set_transaction_version(self, level: int) -> None:
        """Apply a new level of the feature transaction.version to all transactional IDs."""
        self._version = level
        for running in self._running.values():
            running.machine.version = level

    def start(self) -> None:
        """Start checking periodically for timed-out transactions and expired transactional IDs."""
        settings = self._settings
        self._runtime.every(
            settings.transaction_abort_timed_out_transaction_cleanup_interval_ms, self._look_for_timeouts
        )
        self._runtime.every(
            settings.transaction_remove_expired_transaction_cleanup_interval_ms, self._look_for_expired
        )

    def close(self) -> None:
        """Stop all timers and complete pending requests; later requests get COORDINATOR_NOT_AVAILABLE."""
        self._runtime.close()

    def load(self, index: int, leader_epoch: int) -> None:
        """Load a shard that this broker now leads, and complete its prepared transactions. A long log is read
        in steps. Until all of it has been read, requests get COORDINATOR_LOAD_IN_PROGRESS.
        """
        # Delay loading: at startup, partitions that need markers may get their leaders after the shard.
        self._runtime.load(index, leader_epoch, delay=True)

    def unload(self, index: int) -> None:
        """Unload a shard that this broker no longer leads."""
        self._runtime.unload(index)

    @property
    def load_times_ms(self) -> Sequence[int]:
        """Load times of the most recently loaded shards, in milliseconds."""
        return self._runtime.load_times_ms

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Return whether the caller must pass a new producer ID to `init_producer_id` or `end_and_bump`."""
        running, error = self._find(transactional_id)
        return not error and (running is None or running.machine.needs_producer_id)

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: int,
        respond: Callable[[IdentityResult], None],
    ) -> None:
        """Process an InitProducerId request. `new_producer_id` is -1 if no new ID was needed."""
        now_ms = self._now_ms()
        running, error = self._find(transactional_id)
        if transactional_id and not 0 < timeout_ms <= self._settings.transaction_max_timeout_ms:
            error = ErrorCode.INVALID_TRANSACTION_TIMEOUT
        if not error and running is None:
            if new_producer_id == NO_PRODUCER_ID:
                # The transactional ID has just been deleted. The producer retries.
                error = ErrorCode.CONCURRENT_TRANSACTIONS
            else:
                running = self._runtime.host(transactional_id)
                running.machine.create(new_producer_id, timeout_ms, now_ms)
        if error or running is None:
            respond(IdentityResult(error))
            return
        out = running.machine.init_producer_id(timeout_ms, expected, new_producer_id, respond, now_ms)
        self._runtime.carry_out(running, out)

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        respond: Callable[[ErrorCode], None],
        client_version: int = 0,
    ) -> None:
        """Process AddPartitionsToTxn or AddOffsetsToTxn. All partitions get the same error code."""
        running, error = self._find_known(transactional_id)
        if error or running is None:
            respond(error)
        else:
            out = running.machine.add_partitions(
                identity, frozenset(partitions), respond, self._now_ms(), client_version
            )
            self._runtime.carry_out(running, out)

    def verify(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Return NONE if the open transaction contains the partitions (KIP-890 part 1), or an error code."""
        running, error = self._find_known(transactional_id)
        return error if error or running is None else running.machine.verify(identity, partitions)

    def end(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        committed: bool,
        respond: Callable[[IdentityResult], None],
    ) -> None:
        """Process an EndTxn request. Respond once the decision is committed, before writing the markers."""
        running, error = self._find_known(transactional_id)
        if error or running is None:
            respond(IdentityResult(error))
        else:
            out = running.machine.end(identity, committed, respond, self._now_ms())
            self._runtime.carry_out(running, out)

    def end_and_bump(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        committed: bool,
        new_producer_id: int,
        respond: Callable[[IdentityResult], None],
    ) -> None:
        """Process EndTxn for transaction.version 2. `new_producer_id` is -1 if no new ID was needed."""
        running, error = self._find_known(transactional_id)
        if error or running is None:
            respond(IdentityResult(error))
        else:
            out = running.machine.end_and_bump(identity, committed, new_producer_id, respond, self._now_ms())
            self._runtime.carry_out(running, out)

    def describe(self, transactional_id: str) -> tuple[ErrorCode, Status | None]:
        """Return an error code and, if it is NONE, the status of an ID, for DescribeTransactions."""
        running, error = self._find(transactional_id)
        if not error and running is None:
            error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return error, None if running is None else running.machine.status

    def list_transactions(
        self, states: set[str], producer_ids: set[int], duration_ms: int
    ) -> tuple[ErrorCode, list[Overview]]:
        """Return an error code, and the IDs that match all filters. `duration_ms` is a minimum (-1: none)."""
        if self._runtime.is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        if self._runtime.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, []
        now_ms = self._now_ms()
        return ErrorCode.NONE, [
            Overview(transactional_id, status)
            for transactional_id, running in self._running.items()
            for status in (running.machine.status,)
            if (not states or status.state in states)
            and (not producer_ids or status.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - status.start_ms > duration_ms)
        ]

    def _look_for_timeouts(self) -> None:
        now_ms = self._now_ms()
        for running in list(self._running.values()):
            if running.machine.is_timed_out(now_ms):
                self._runtime.carry_out(running, running.machine.abort_timed_out(now_ms))

    def _look_for_expired(self) -> None:
        now_ms = self._now_ms()
        expiration_ms = self._settings.transactional_id_expiration_ms
        for running in list(self._running.values()):
            self._runtime.carry_out(running, running.machine.expire(now_ms, expiration_ms))

    def _find(self, transactional_id: str) -> tuple[RunningMachine[Transaction] | None, ErrorCode]:
        """Return the state machine of an ID, and an error code. For a new ID, return None and NONE."""
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        running = self._running.get(transactional_id)
        return running, ErrorCode.NONE if running is not None else self._runtime.refusal(transactional_id)

    def _find_known(self, transactional_id: str) -> tuple[RunningMachine[Transaction] | None, ErrorCode]:
        running, error = self._find(transactional_id)
        if not error and running is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return running, error

    def _perform(self, running: RunningMachine[Transaction], effect: Markers | RetryCompletion) -> None:
        if isinstance(effect, Markers):
            delivery = MarkerDelivery(running, effect, self._markers, self._runtime, self._complete)
            # Send the response before the markers, because the producer waits only for the decision.
            self._scheduler.call_later(0, delivery.send)
        else:
            self._runtime.timers.call_later(RETRY_MS, partial(self._complete, running))

    def _complete(self, running: RunningMachine[Transaction]) -> None:
        if self._runtime.is_running(running):
            offer_core()
            self._runtime.carry_out(running, running.machine.markers_written())
