"""The coordinator runtime: responses when appends are delayed, fail or are lost, and loading of long logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch
from kafka_compat.coordinator_runtime.timers import Timers
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.classic.rebalance import STABLE
from kafka_compat.groups.consumer.embedded_protocol import encode_assignment
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.offset_requests import DELETED_AT_ONCE
from kafka_compat.groups.records import OffsetRecord, encode_record
from kafka_compat.groups.requests import Commit, JoinResult
from tests.coordinator_runtime.group_coordinator import RETENTION_MS, coordinator_of
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.memory import ManualScheduler, ManualTimer, join_request, position, sync_request
from tests.support.steps import result_of

PARTITION = ("topic", 0)


def commit(coordinator: GroupCoordinator, offset: int, answers: list[Any], group: str = "g") -> None:
    request = Commit(
        generation_id=-1, member_id="", group_instance_id=None, offsets={PARTITION: position(offset)}
    )
    result_of(coordinator.offsets.commit(group, request, lambda errors: answers.append(errors[PARTITION])))


def committed(coordinator: GroupCoordinator, group: str = "g") -> int | None:
    error, fetched = coordinator.offsets.fetch(group, [PARTITION], require_stable=False)
    assert error is ErrorCode.NONE
    value, _ = fetched[PARTITION]
    return None if value is None else value.offset


@pytest.fixture
def log() -> ReplicatedLog:
    return ReplicatedLog()


@pytest.fixture
def scheduler() -> ManualScheduler:
    return ManualScheduler()


@pytest.fixture
def coordinator(log: ReplicatedLog, scheduler: ManualScheduler) -> GroupCoordinator:
    coordinator = coordinator_of(log, scheduler)
    coordinator.load(0)
    return coordinator


def test_responses_to_appends_committed_together_are_sent_in_order(
    coordinator: GroupCoordinator, log: ReplicatedLog
) -> None:
    answers: list[Any] = []
    commit(coordinator, 1, answers)
    commit(coordinator, 2, answers)
    log.replicate(1)
    assert (answers, committed(coordinator)) == ([ErrorCode.NONE], 1)
    log.replicate(1)
    assert (answers, committed(coordinator)) == ([ErrorCode.NONE] * 2, 2)


@pytest.fixture
def classic_group(
    coordinator: GroupCoordinator, log: ReplicatedLog, scheduler: ManualScheduler
) -> JoinResult:
    """A stable classic group of one member."""
    joined: list[JoinResult] = []
    coordinator.classic.join("g", join_request(requires_known_member_id=False), joined.append)
    scheduler.advance()
    assignments = {joined[0].member_id: encode_assignment({"topic": (0, 1)}, b"\0\1")}
    coordinator.classic.sync("g", sync_request(joined[0].member_id, 1, assignments), lambda result: None)
    log.replicate(1)
    return joined[0]


def convert(coordinator: GroupCoordinator) -> list[HeartbeatResult]:
    """Let a member of the consumer protocol join the group."""
    answers: list[HeartbeatResult] = []
    heartbeat = Heartbeat(
        "new", 0, "client", "/127.0.0.1", rebalance_timeout_ms=1_000, topic_names=("topic",), owned={}
    )
    coordinator.consumer.heartbeat("g", heartbeat, answers.append)
    return answers


def test_state_outside_of_the_log_changes_when_the_records_are_appended(
    coordinator: GroupCoordinator, log: ReplicatedLog, classic_group: JoinResult
) -> None:
    answers = convert(coordinator)
    assert not answers
    error = coordinator.classic.heartbeat("g", 1, classic_group.member_id, None)
    assert error is ErrorCode.REBALANCE_IN_PROGRESS
    log.replicate(1_000)
    assert [answer.error for answer in answers] == [ErrorCode.NONE]


def test_state_outside_of_the_log_does_not_change_if_the_append_is_rejected(
    coordinator: GroupCoordinator, log: ReplicatedLog, classic_group: JoinResult
) -> None:
    log.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    assert [answer.error for answer in convert(coordinator)] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert coordinator.classic.heartbeat("g", 1, classic_group.member_id, None) is ErrorCode.NONE
    _, described = coordinator.classic.describe("g")
    assert described is not None and described.state is STABLE


def test_an_append_that_timed_out_takes_effect_when_it_is_committed(
    coordinator: GroupCoordinator, log: ReplicatedLog, scheduler: ManualScheduler
) -> None:
    answers: list[Any] = []
    commit(coordinator, 1, answers)
    scheduler.advance(3_000)
    commit(coordinator, 2, answers)
    scheduler.advance(2_000)
    assert answers == [ErrorCode.REQUEST_TIMED_OUT]
    scheduler.advance(3_000)
    assert answers == [ErrorCode.REQUEST_TIMED_OUT] * 2
    assert committed(coordinator) is None
    log.replicate(2)
    assert committed(coordinator) == 2
    assert len(answers) == 2


def test_an_append_to_too_few_replicas_takes_effect_despite_its_error(
    coordinator: GroupCoordinator, log: ReplicatedLog
) -> None:
    answers: list[Any] = []
    commit(coordinator, 1, answers)
    log.is_under_min_isr = True
    log.replicate(1)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert committed(coordinator) == 1
    assert committed(successor_of(log)) == 1


def test_a_second_deletion_waits_until_the_first_is_committed(
    coordinator: GroupCoordinator, log: ReplicatedLog
) -> None:
    commit(coordinator, 1, [])
    log.replicate(1)
    answers: list[Any] = []
    coordinator.delete_groups(["g"], answers.append)
    coordinator.delete_groups(["g"], answers.append)
    assert (answers, committed(coordinator)) == ([], 1)
    log.replicate(1)
    assert answers == [{"g": ErrorCode.NONE}] * 2
    assert coordinator.group_ids() == []


def test_a_deletion_that_waits_for_a_lost_append_gets_its_error(
    coordinator: GroupCoordinator, log: ReplicatedLog
) -> None:
    commit(coordinator, 1, [])
    log.replicate(1)
    answers: list[Any] = []
    coordinator.delete_groups(["g"], answers.append)
    coordinator.delete_groups(["g"], answers.append)
    log.lose_leadership(0)
    assert answers == [{"g": ErrorCode.NOT_COORDINATOR}] * 2


def test_expired_offsets_of_many_partitions_are_deleted_in_several_batches(
    coordinator: GroupCoordinator, log: ReplicatedLog, scheduler: ManualScheduler
) -> None:
    coordinator.start()
    count = 2 * DELETED_AT_ONCE + 1
    offsets = {("topic", number): position(number) for number in range(count)}
    request = Commit(generation_id=-1, member_id="", group_instance_id=None, offsets=offsets)
    result_of(coordinator.offsets.commit("g", request, lambda errors: None))
    log.replicate(1)
    scheduler.advance(2 * RETENTION_MS)
    assert [len(batch.records) for batch in log.batches[1:]] == [DELETED_AT_ONCE, DELETED_AT_ONCE, 1]
    log.replicate(2)
    assert coordinator.group_ids() == ["g"]
    log.replicate(1)
    scheduler.advance(RETENTION_MS)
    assert coordinator.group_ids() == []


def successor_of(log: ReplicatedLog) -> GroupCoordinator:
    coordinator = coordinator_of(log, ManualScheduler())
    coordinator.load(0)
    return coordinator


def test_pending_appends_fail_exactly_once_when_leadership_ends(
    coordinator: GroupCoordinator, log: ReplicatedLog, scheduler: ManualScheduler
) -> None:
    answers: list[Any] = []
    commit(coordinator, 1, answers)
    joined: list[Any] = []
    coordinator.classic.join("h", join_request(), joined.append)
    coordinator.unload(0)
    assert answers == [ErrorCode.NOT_COORDINATOR]
    assert [result.error for result in joined] == [ErrorCode.NOT_COORDINATOR]
    assert scheduler.pending == 0
    log.replicate(1)
    log.lose_leadership(0)
    assert len(answers) == len(joined) == 1


def test_a_reelected_coordinator_drops_its_pending_appends(
    coordinator: GroupCoordinator, log: ReplicatedLog
) -> None:
    answers: list[Any] = []
    commit(coordinator, 1, answers)
    log.lose_leadership(0)
    coordinator.load(0)
    commit(coordinator, 2, answers, "h")
    log.replicate(1)
    assert answers == [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]
    assert (committed(coordinator), committed(coordinator, "h")) == (None, 2)


class UnreadableLog(ReplicatedLog):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def replay(self, shard: int) -> Iterator[ReplayedBatch]:
        yield ReplayedBatch(1, -1, None, [encode_record(OffsetRecord("g", "topic", 0, position(1)))])
        raise self.error


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ZeroDivisionError()], ids=repr)
def test_a_coordinator_is_unavailable_if_its_log_is_unreadable(error: Exception) -> None:
    coordinator = coordinator_of(UnreadableLog(error), ManualScheduler())
    coordinator.load(0)
    answers: list[Any] = []
    commit(coordinator, 1, answers)
    assert answers == [ErrorCode.NOT_COORDINATOR]
    assert coordinator.list_groups(set(), set()) == (ErrorCode.NONE, [])
    coordinator.unload(0)


class SlowScheduler(ManualScheduler):
    """A scheduler on which each reading of the clock takes half a millisecond. `step` runs immediate
    callbacks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.soon: list[Callable[[], None]] = []

    def monotonic_ms(self) -> int:
        self.looks += 1
        return self.looks // 2

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        if delay_ms == 0:
            self.soon.append(callback)
        return ManualTimer(callback)

    def step(self) -> int:
        """Run the next callback, and return its duration in milliseconds."""
        begun = self.looks
        self.soon.pop(0)()
        return (self.looks - begun) // 2


def test_loading_yields_to_the_event_loop_every_few_milliseconds(log: ReplicatedLog) -> None:
    for number in range(100):
        log.append(0, [encode_record(OffsetRecord(f"g{number}", "topic", 0, position(number)))])
    scheduler = SlowScheduler()
    coordinator = coordinator_of(log, scheduler)
    coordinator.load(0)
    durations_ms: list[int] = []
    while coordinator._runtime.is_loading:
        durations_ms.append(scheduler.step())
    assert len(durations_ms) > 20
    assert max(durations_ms) < 10
    assert committed(coordinator, "g99") == 99


def test_a_group_is_served_as_soon_as_its_shard_is_ready(log: ReplicatedLog) -> None:
    """A group's sessions start when it is loaded, so it must not wait for thousands of other groups."""
    for number in range(100):
        log.append(0, [encode_record(OffsetRecord(f"g{number}", "topic", 0, position(number)))])
    scheduler = SlowScheduler()
    coordinator = coordinator_of(log, scheduler)
    coordinator.load(0)
    while not coordinator._running:
        scheduler.step()
    assert coordinator._runtime.is_loading
    assert committed(coordinator, "g0") == 0
    error, _ = coordinator.offsets.fetch("g99", None, require_stable=False)
    assert error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_marker_received_during_loading_applies_after_loading(log: ReplicatedLog) -> None:
    for number in range(2_000):
        record = encode_record(OffsetRecord("g", "topic", 0, position(number)))
        log.batches.append(ReplayedBatch(number + 1, 7, None, [record]))
    scheduler = ManualScheduler()
    coordinator = coordinator_of(log, scheduler)
    coordinator.load(0)
    assert coordinator._runtime.is_loading
    coordinator.end_transaction(0, 7, True, log.end_offset)
    scheduler.advance()
    assert committed(coordinator) == 1_999


def test_all_deadlines_share_one_timer() -> None:
    scheduler = ManualScheduler()
    timers = Timers(scheduler)
    called: list[str] = []
    late = timers.call_later(300, lambda: called.append("late"))
    timers.call_later(100, lambda: called.append("early"))
    cancelled = timers.call_later(200, lambda: called.append("cancelled"))
    assert scheduler.pending == 1
    cancelled.cancel()
    scheduler.advance(299)
    assert called == ["early"]
    timers.call_later(0, lambda: late.cancel())
    scheduler.advance(1_000)
    assert called == ["early"]
    assert scheduler.pending == 0


def test_a_failing_callback_does_not_stop_other_callbacks() -> None:
    scheduler = ManualScheduler()
    timers = Timers(scheduler)
    called: list[str] = []

    def fail() -> None:
        raise ZeroDivisionError

    timers.call_later(1, fail)
    timers.call_later(1, lambda: called.append("next"))
    with pytest.raises(ZeroDivisionError):
        scheduler.advance(1)
    scheduler.advance()
    assert called == ["next"]
