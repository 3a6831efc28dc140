"""Retries of the persister, with a local share coordinator and simulated other brokers."""

from __future__ import annotations

from collections.abc import Callable

from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.share_coordinator.operations import Operation, Result, rejected
from kafka_compat.share_coordinator.persister import (
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)
from kafka_compat.share_coordinator.retrying_persister import RETRY_MS, Respond, RetryingPersister
from tests.share_coordinator.memory import KEY, OTHER, LoadedCoordinator

LOCAL, REMOTE, THIRD = 1, 2, 3


class World:
    """A persister of broker 1, and the requests that it sends to other brokers."""

    def __init__(self, leader: int | None = LOCAL, *, is_standalone: bool = False) -> None:
        self.coordinator = LoadedCoordinator()
        self.metadata = MetadataCache("cluster", LOCAL)
        change = self.metadata.change()
        change.set_brokers({broker_id: BrokerMetadata(broker_id, {}, None) for broker_id in (1, 2, 3)})
        change.publish()
        if leader is not None:
            self.lead(leader)
        self.sent: list[tuple[int, SharePartitionKey, Operation, Respond]] = []
        self.creations: list[Callable[[], None]] = []
        self.persister = RetryingPersister(
            local=lambda: self.coordinator.coordinator,
            remote=None if is_standalone else self,
            metadata=self.metadata,
            create_topic=self.creations.append,
            scheduler=self.coordinator.scheduler,
        )
        self.errors: list[ErrorCode] = []

    def send(self, broker_id: int, key: SharePartitionKey, operation: Operation, respond: Respond) -> None:
        self.sent.append((broker_id, key, operation, respond))

    def lead(self, broker_id: int) -> None:
        change = self.metadata.change()
        partition = PartitionMetadata(0, broker_id, 1, (1, 2, 3), (1, 2, 3))
        change.put_topic(TopicMetadata(SHARE_STATE_TOPIC, OTHER, (partition,)))
        change.publish()

    def advance(self, duration_ms: int) -> None:
        self.coordinator.advance(duration_ms)

    def respond(self, result: Result) -> None:
        self.sent.pop(0)[3](result)


def test_the_local_share_coordinator_is_called_directly() -> None:
    world = World(is_standalone=True)
    states: list[tuple[ErrorCode, StoredState | None]] = []
    summaries: list[tuple[ErrorCode, StateSummary | None]] = []
    world.persister.initialize(KEY, 1, 10, world.errors.append)
    world.persister.write(KEY, 1, 0, -1, -1, [StateBatch(10, 11, 2, 1)], world.errors.append)
    world.persister.read(KEY, 0, lambda error, state: states.append((error, state)))
    world.persister.read_summary(KEY, lambda error, summary: summaries.append((error, summary)))
    world.persister.delete(KEY, world.errors.append)
    world.advance(0)
    assert world.errors == [ErrorCode.NONE] * 3
    assert states == [(ErrorCode.NONE, StoredState(1, 10, (StateBatch(10, 11, 2, 1),)))]
    assert summaries == [(ErrorCode.NONE, StateSummary(1, 0, 10, 0))]


def test_the_first_operation_creates_the_topic_once() -> None:
    world = World(None)
    world.persister.initialize(KEY, 1, 10, world.errors.append)
    world.persister.delete(KEY, world.errors.append)
    world.advance(500)
    assert len(world.creations) == 1
    world.creations[0]()
    world.advance(1_000)
    assert len(world.creations) == 2
    world.lead(LOCAL)
    world.advance(0)
    assert world.errors == [ErrorCode.NONE] * 2


def test_retriable_errors_are_retried_and_others_are_not() -> None:
    world = World(REMOTE)
    world.persister.initialize(KEY, 1, 10, world.errors.append)
    for error in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    ):
        world.respond(rejected(error))
        assert world.sent == []
        world.advance(1_000)
        assert len(world.sent) == 1
    world.respond(rejected(ErrorCode.FENCED_STATE_EPOCH))
    world.advance(RETRY_MS)
    assert world.errors == [ErrorCode.FENCED_STATE_EPOCH]
    assert world.sent == []


def test_an_operation_follows_its_share_coordinator() -> None:
    world = World(REMOTE)
    world.persister.initialize(KEY, 1, 10, world.errors.append)
    late = world.sent.pop()[3]
    world.lead(THIRD)
    world.advance(0)
    assert [sent[0] for sent in world.sent] == [THIRD]
    late(Result())
    assert world.errors == []
    world.lead(LOCAL)
    world.advance(0)
    assert world.errors == [ErrorCode.NONE]
    world.respond(rejected(ErrorCode.NETWORK_EXCEPTION))
    world.advance(RETRY_MS)
    assert world.errors == [ErrorCode.NONE]


def test_an_operation_ends_with_the_last_error_after_some_time() -> None:
    world = World(-1)
    world.persister.initialize(KEY, 1, 10, world.errors.append)
    world.advance(RETRY_MS - 1)
    assert world.errors == []
    world.advance(1)
    assert world.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert world.coordinator.scheduler.pending == 1  # the jobs of the coordinator


def test_pending_operations_end_when_the_persister_is_closed() -> None:
    world = World(REMOTE)
    world.persister.initialize(KEY, 1, 10, world.errors.append)
    world.persister.initialize(KEY, 2, 10, world.errors.append)
    world.respond(rejected(ErrorCode.NOT_COORDINATOR))
    world.persister.close()
    assert world.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    world.respond(Result())
    world.persister.delete(KEY, world.errors.append)
    world.advance(RETRY_MS)
    assert world.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert world.sent == []
