"""The persister of a broker: sends each operation to the share coordinator of its share-partition, on this
broker or on another one, until it succeeds or fails permanently.

Rules
1. The first operation creates `__share_group_state` if it is missing.
2. An operation is retried with a backoff that doubles, and immediately when a partition of
   `__share_group_state` gets a new leader, if the share coordinator is not available, loads its log or has
   moved, or if the connection to it is lost. After RETRY_MS, its caller gets the last error.
3. A request to a broker that is no longer the share coordinator is abandoned. The broker may nevertheless
   have executed it. Repeating an operation does not change its effect.
4. When the persister is closed, all pending operations end with COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.coordinator_runtime.timers import Deadline, Timers
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.share_coordinator.operations import (
    Delete,
    Initialize,
    Operation,
    Read,
    ReadSummary,
    Result,
    Write,
    rejected,
)
from kafka_compat.share_coordinator.persister import SharePartitionKey, StateSummary, StoredState
from kafka_compat.share_coordinator.records import coordinator_key

if TYPE_CHECKING:
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.share_coordinator.coordinator import ShareCoordinator
    from kafka_compat.share_coordinator.persister import StateBatch

RETRY_MS: Final = 30_000
"""Maximum time in ms for which an operation is retried."""
BACKOFF_MS: Final = 50
BACKOFF_MAX_MS: Final = 1_000

_RETRIABLE: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_NO_BROKER: Final = -1

Respond = Callable[[Result], None]


class RemoteCoordinators(Protocol):
    def send(self, broker_id: int, key: SharePartitionKey, operation: Operation, respond: Respond) -> None:
        """Send an operation to another broker, and call `respond` with its result, or with NETWORK_EXCEPTION
        if the connection is lost. `respond` is not called if the connections are closed.
        """


class _Call:
    """A pending operation. `attempt` counts its attempts; results of earlier attempts are ignored."""

    __slots__ = (
        "attempt",
        "backoff_ms",
        "broker_id",
        "coordinated",
        "expires_ms",
        "key",
        "operation",
        "respond",
        "retry",
    )

    def __init__(
        self, key: SharePartitionKey, operation: Operation, respond: Respond, expires_ms: int
    ) -> None:
        self.key = key
        self.coordinated = coordinator_key(*key)
        self.operation = operation
        self.respond = respond
        self.expires_ms = expires_ms
        self.attempt = 0
        self.backoff_ms = BACKOFF_MS
        self.broker_id = _NO_BROKER
        """The other broker to which the operation has been sent."""
        self.retry: Deadline | None = None
        """The next attempt, while the call waits for it."""


class RetryingPersister:
    def __init__(
        self,
        *,
        local: Callable[[], ShareCoordinator],
        remote: RemoteCoordinators | None,
        metadata: MetadataCache,
        create_topic: Callable[[Callable[[], None]], None],
        scheduler: Scheduler,
    ) -> None:
        """`create_topic` creates `__share_group_state` and then calls its argument, also if that fails.
        `remote` is None if no other broker can join.
        """
        self._local = local
        self._remote = remote
        self._metadata = metadata
        self._create_topic = create_topic
        self._is_creating = False
        self._scheduler = scheduler
        self._timers = Timers(scheduler)
        self._calls: dict[_Call, None] = {}
        self._is_closed = False
        metadata.feed.subscribe(self._on_metadata)

    def close(self) -> None:
        """End all pending operations, and those that follow."""
        self._is_closed = True
        self._timers.close()
        calls = list(self._calls)
        self._calls.clear()
        for call in calls:
            call.attempt += 1
            call.respond(rejected(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    # --- the interface Persister

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        self.process(key, Initialize(state_epoch, start_offset), partial(_report, done))

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ErrorCode, StoredState | None], None]
    ) -> None:
        self.process(key, Read(leader_epoch), partial(_report_state, done))

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Callable[[ErrorCode], None],
    ) -> None:
        operation = Write(state_epoch, leader_epoch, start_offset, delivery_complete_count, tuple(batches))
        self.process(key, operation, partial(_report, done))

    def delete(self, key: SharePartitionKey, done: Callable[[ErrorCode], None]) -> None:
        self.process(key, Delete(), partial(_report, done))

    def read_summary(
        self, key: SharePartitionKey, done: Callable[[ErrorCode, StateSummary | None], None]
    ) -> None:
        self.process(key, ReadSummary(-1), partial(_report_summary, done))

    # --- attempts

    def process(self, key: SharePartitionKey, operation: Operation, respond: Respond) -> None:
        """Execute an operation, and call `respond` once with its result."""
        if self._is_closed:
            respond(rejected(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        call = _Call(key, operation, respond, self._scheduler.monotonic_ms() + RETRY_MS)
        self._calls[call] = None
        self._try(call)

    def _try(self, call: _Call) -> None:
        call.retry = None
        call.attempt += 1
        settle = partial(self._settle, call, call.attempt)
        if SHARE_STATE_TOPIC not in self._metadata.topics:
            self._ensure_topic()
            settle(rejected(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        leader_id = self._leader(call)
        if leader_id == self._metadata.local_id:
            call.broker_id = _NO_BROKER
            self._local().process(call.key, call.operation, settle)
        elif self._remote is None or leader_id not in self._metadata.brokers:
            settle(rejected(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            call.broker_id = leader_id
            self._remote.send(leader_id, call.key, call.operation, settle)

    def _leader(self, call: _Call) -> int:
        topic = self._metadata.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            return _NO_BROKER
        return topic.partitions[shard_of(call.coordinated, len(topic.partitions))].leader

    def _ensure_topic(self) -> None:
        if not self._is_creating:
            self._is_creating = True
            self._create_topic(self._created)

    def _created(self) -> None:
        self._is_creating = False

    def _settle(self, call: _Call, attempt: int, result: Result) -> None:
        if attempt != call.attempt or call not in self._calls:
            return
        call.broker_id = _NO_BROKER
        now_ms = self._scheduler.monotonic_ms()
        if result.error not in _RETRIABLE or now_ms >= call.expires_ms:
            del self._calls[call]
            call.respond(result)
            return
        call.retry = self._timers.call_at(
            min(now_ms + call.backoff_ms, call.expires_ms), partial(self._try, call)
        )
        call.backoff_ms = min(2 * call.backoff_ms, BACKOFF_MAX_MS)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        """Retry operations whose share coordinator has moved."""
        is_created = any(topic.name == SHARE_STATE_TOPIC for topic in delta.created)
        has_moved = any(name == SHARE_STATE_TOPIC for name, _ in delta.partitions)
        if not (is_created or has_moved or delta.broker_ids):
            return
        for call in list(self._calls):
            if call.broker_id != _NO_BROKER and self._leader(call) != call.broker_id:
                self._settle(call, call.attempt, rejected(ErrorCode.NOT_COORDINATOR))
            if call.retry is not None:
                call.retry.cancel()
                # Not at once, because this broker may become the leader after all subscribers are notified.
                call.retry = self._timers.call_later(0, partial(self._try, call))


def _report(done: Callable[[ErrorCode], None], result: Result) -> None:
    done(result.error)


def _report_state(done: Callable[[ErrorCode, StoredState | None], None], result: Result) -> None:
    done(result.error, result.value if isinstance(result.value, StoredState) else None)


def _report_summary(done: Callable[[ErrorCode, StateSummary | None], None], result: Result) -> None:
    done(result.error, result.value if isinstance(result.value, StateSummary) else None)
