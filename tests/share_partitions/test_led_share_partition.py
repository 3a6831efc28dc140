"""A share-partition on its leader: loading, storing and lock timers, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps
from kafka_compat.share_coordinator.persister import SharePartitionKey, StateBatch
from kafka_compat.share_partitions import share_partition
from kafka_compat.share_partitions.acquisition import Acquisition, OffsetRange
from kafka_compat.share_partitions.changes import (
    ACCEPT,
    REJECT,
    RELEASE,
    Acknowledgement,
    DeadLetters,
    Limits,
)
from kafka_compat.share_partitions.counts import ShareCounts
from kafka_compat.share_partitions.in_flight import ACQUIRED, AVAILABLE
from kafka_compat.share_partitions.led_share_partition import LedSharePartition
from tests.share_partitions.manual_clock import Clock
from tests.share_partitions.memory_persister import MemoryPersister
from tests.support.steps import result_of

KEY = SharePartitionKey("group", UUID(int=1), 0)


class Replica:
    """A replica of the leader."""

    topic, partition, leader_epoch, is_leader = "topic", 0, 3, True

    def __init__(self) -> None:
        self.listeners: set[Any] = set()


class Host:
    """The broker of one share-partition."""

    dead_letters: Any = None

    def __init__(self) -> None:
        self.scheduler = Clock()
        self.counts = ShareCounts()
        self.persister = MemoryPersister()
        self.group_limits = Limits(lock_duration_ms=100)
        self.forgotten: list[LedSharePartition] = []
        self.results: list[ErrorCode] = []
        self.wakes = 0
        self.led = LedSharePartition(self, KEY, Replica())  # type: ignore[arg-type]

    def limits(self, group_id: str) -> Limits:
        return self.group_limits

    def resolve_start(self, group_id: str, replica: object, done: Callable[[int | ErrorCode], None]) -> None:
        done(0)

    def forget(self, led: LedSharePartition) -> None:
        self.forgotten.append(led)
        led.close()

    def in_turn(self, job: Callable[[], None]) -> None:
        job()

    def wake(self) -> None:
        self.wakes += 1

    def load(self) -> None:
        self.persister.initialize(KEY, 7, -1, lambda code: None)
        self.read()

    def read(self) -> None:
        self.led.load()
        self.scheduler.advance(0)

    def acquire(self, member: str = "a") -> int:
        """Acquire ten records, and return how many were acquired."""
        machine = self.led.refresh()
        assert machine is not None
        acquired = Acquisition(
            machine,
            member,
            is_exact=False,
            max_records=10,
            batch_size=10,
            now_ms=self.scheduler.now_ms,
        ).run(machine.next_fetch_offset(), [OffsetRange(0, 9)])
        self.led.locked(self.scheduler.now_ms, self.group_limits.lock_duration_ms)
        return sum(each.last - each.first + 1 for each in acquired)

    def acknowledge(self, kind: int) -> None:
        result_of(self.led.acknowledge("a", [Acknowledgement(0, 9, [kind])], self.results.append))
        self.scheduler.advance(0)

    @property
    def stored(self) -> tuple[StateBatch, ...]:
        return self.persister.stored[KEY].batches()


def test_a_state_that_is_not_initialized_is_an_unknown_server_error() -> None:
    host = Host()
    host.read()
    assert host.led.error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert host.forgotten == [host.led]


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_errors_of_reading_reach_the_client(stored: ErrorCode, sent: ErrorCode) -> None:
    host = Host()
    host.persister.read_error = stored
    host.read()
    assert host.led.error == sent


def test_a_result_is_sent_when_it_has_been_stored() -> None:
    host = Host()
    host.load()
    assert host.acquire() == 10
    host.persister.is_held = True
    host.acknowledge(RELEASE)
    assert host.results == []
    assert host.acquire("b") == 0
    host.persister.release()
    assert host.results == [ErrorCode.NONE]
    assert host.stored == (StateBatch(0, 9, 0, 1),)
    assert host.acquire("b") == 10


def test_a_fenced_state_is_rolled_back_and_forgotten() -> None:
    host = Host()
    host.load()
    host.acquire()
    host.persister.write_error = ErrorCode.FENCED_STATE_EPOCH
    host.acknowledge(ACCEPT)
    assert host.results == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert host.forgotten == [host.led]


def test_expired_locks_are_released_even_if_the_state_is_fenced() -> None:
    host = Host()
    host.load()
    host.acquire()
    host.persister.write_error = ErrorCode.FENCED_STATE_EPOCH
    host.scheduler.advance(100)
    assert host.forgotten == []
    assert host.acquire("b") == 10


def test_another_error_only_rolls_back() -> None:
    host = Host()
    host.load()
    host.acquire()
    host.persister.write_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    host.acknowledge(ACCEPT)
    assert host.results == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert host.forgotten == []
    host.persister.write_error = ErrorCode.NONE
    host.acknowledge(ACCEPT)
    assert host.results[1:] == [ErrorCode.NONE]


def test_one_timer_wakes_waiting_fetches_when_locks_expire() -> None:
    host = Host()
    host.load()
    host.led.add_waiter(host)
    host.acquire()
    host.scheduler.advance(99)
    assert host.wakes == 0
    host.scheduler.advance(20)
    assert host.wakes > 0
    assert host.stored == (StateBatch(0, 9, 0, 1),)
    assert host.acquire("b") == 10
    assert sum(each.call is not None for each in host.scheduler.timers) == 1


def test_without_a_queue_dead_letters_are_archived_at_once() -> None:
    host = Host()
    host.group_limits = host.group_limits._replace(has_dead_letters=True)
    host.load()
    host.acquire()
    host.acknowledge(REJECT)
    assert host.led.machine is not None
    assert host.led.machine.start_offset == 10


class Queue:
    """A dead letter queue that writes when the test says so."""

    def __init__(self) -> None:
        self.letters: list[DeadLetters] = []

    def write(self, source: LedSharePartition, letters: Sequence[DeadLetters]) -> None:
        self.letters += letters

    def close(self) -> None:
        self.letters.clear()


def test_dead_letters_are_archived_when_they_have_been_written() -> None:
    host = Host()
    host.dead_letters = queue = Queue()
    host.group_limits = host.group_limits._replace(has_dead_letters=True)
    host.load()
    host.acquire()
    host.acknowledge(REJECT)
    assert queue.letters == [DeadLetters(0, 9, 1, "Offset rejected by client.")]
    assert host.stored == (StateBatch(0, 9, 3, 1),)
    host.led.dead_letters_written(queue.letters)
    host.scheduler.advance(0)
    assert host.led.machine is not None
    assert host.led.machine.start_offset == 10


def test_a_share_partition_is_settled_when_its_dead_letters_are_archived() -> None:
    host = Host()
    host.dead_letters = queue = Queue()
    host.group_limits = host.group_limits._replace(has_dead_letters=True)
    host.load()
    host.acquire()
    assert host.led.is_settled
    host.acknowledge(REJECT)
    assert not host.led.is_settled
    settled: list[bool] = []
    host.led.when_settled = lambda: settled.append(True)
    host.persister.is_held = True
    host.led.dead_letters_written(queue.letters)
    assert not host.led.is_settled
    host.persister.release()
    assert host.led.is_settled
    assert settled == [True]


def test_interrupted_dead_letters_are_written_again_after_loading() -> None:
    host = Host()
    host.dead_letters = queue = Queue()
    host.persister.initialize(KEY, 7, -1, lambda code: None)
    batches = [StateBatch(0, 4, 3, 5), StateBatch(5, 5, 3, 1)]
    host.persister.write(KEY, 7, 3, 0, 0, batches, lambda code: None)
    host.read()
    assert queue.letters == [
        DeadLetters(0, 4, 5, "Offset delivery count exceeded the threshold."),
        DeadLetters(5, 5, 1, "Offset rejected by client."),
    ]


# Acknowledgements that are applied in steps


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Host, Steps[None]]]:
    """Yield a host, and the acknowledgement of ten records, of which the first has been accepted."""
    monkeypatch.setattr(share_partition, "_ACKNOWLEDGED_AT_ONCE", 1)
    host = Host()
    host.load()
    assert host.acquire() == 10
    acknowledgements = [Acknowledgement(offset, offset, [ACCEPT]) for offset in range(10)]
    steps = host.led.acknowledge("a", acknowledgements, host.results.append)
    next(steps)
    yield host, steps
    steps.close()


def states(host: Host) -> list[tuple[int, int, int]]:
    machine = host.led.machine
    assert machine is not None
    return [(run.first, run.last, run.state) for each in machine.batches for run in each.runs]


def test_acknowledgements_take_effect_together(in_steps: tuple[Host, Steps[None]]) -> None:
    host, steps = in_steps
    assert not host.stored
    result_of(steps)
    host.scheduler.advance(0)
    assert host.results == [ErrorCode.NONE]
    assert host.led.machine is not None
    assert host.led.machine.start_offset == 10


def test_acknowledgements_of_a_client_that_disconnects_are_rolled_back(
    in_steps: tuple[Host, Steps[None]],
) -> None:
    host, steps = in_steps
    steps.close()
    assert states(host) == [(0, 9, ACQUIRED)]
    assert not host.results


def test_a_session_that_ends_releases_its_records_after_its_acknowledgements(
    in_steps: tuple[Host, Steps[None]],
) -> None:
    host, steps = in_steps
    host.led.release("a")
    next(steps)
    host.led.release("a")
    steps.close()
    host.scheduler.advance(0)
    assert states(host) == [(0, 9, AVAILABLE)]


def test_locks_that_expire_between_steps_fail_all_acknowledgements(
    in_steps: tuple[Host, Steps[None]],
) -> None:
    host, steps = in_steps
    host.scheduler.advance(host.group_limits.lock_duration_ms)
    result_of(steps)
    host.scheduler.advance(0)
    assert host.results == [ErrorCode.INVALID_RECORD_STATE]
    assert states(host) == [(0, 9, AVAILABLE)]


def test_a_share_partition_that_is_forgotten_between_steps_rejects_acknowledgements(
    in_steps: tuple[Host, Steps[None]],
) -> None:
    host, steps = in_steps
    host.led.close()
    result_of(steps)
    assert host.results == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
