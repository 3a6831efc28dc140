"""Events of groups that take long: other events of the group wait, and each gets one response."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.requests import JoinResult, Leaving
from tests.groups.consumer.topics import topic_id
from tests.groups.memory import Coordinator, join_request, sync_request
from tests.support.steps import result_of

MEMBERS = 500


class SlowClockCoordinator(Coordinator):
    """A coordinator on which every reading of the clock takes a millisecond while `is_slow` is true."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        read = self.scheduler.monotonic_ms

        def slowly() -> int:
            self.scheduler.now_ms += self.is_slow
            return read()

        self.scheduler.monotonic_ms = slowly  # type: ignore[method-assign]

    def heartbeat_of(self, member: str, epoch: int = 0, **changes: Any) -> list[HeartbeatResult]:
        """Send a heartbeat, and return the list to which its result is added."""
        given: dict[str, Any] = {"rebalance_timeout_ms": 1_000, "topic_names": ("topic",), "owned": {}}
        fields = given | changes if epoch == 0 else changes
        results: list[HeartbeatResult] = []
        self.consumer.heartbeat("g", Heartbeat(member, epoch, "c", "/h", **fields), results.append)
        return results


@pytest.fixture
def busy() -> SlowClockCoordinator:
    """A coordinator of a group that computes the assignment of many members."""
    coordinator = SlowClockCoordinator()
    for number in range(MEMBERS):
        assert coordinator.heartbeat_of(f"m-{number}")[0].error is ErrorCode.NONE
    coordinator.scheduler.advance(1_000)
    coordinator.is_slow = True
    return coordinator


def test_a_long_heartbeat_is_answered_after_other_work(busy: SlowClockCoordinator) -> None:
    results = busy.heartbeat_of("last")
    assert results == []
    assert busy.consumer.describe("g")[0] is ErrorCode.NONE
    busy.scheduler.advance(10_000)
    assert [each.error for each in results] == [ErrorCode.NONE]


def test_events_of_a_busy_group_are_processed_in_order(busy: SlowClockCoordinator) -> None:
    first = busy.heartbeat_of("first")
    left: list[object] = []
    result_of(busy.classic.leave("g", [Leaving("first", None, "")], left.append))
    again = busy.heartbeat_of("first", 1)
    assert (first, left, again) == ([], [], [])
    busy.scheduler.advance(10_000)
    assert first[0].error is ErrorCode.NONE
    assert len(left) == 1
    assert again[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_all_members_have_the_partitions_that_the_long_heartbeat_assigned(busy: SlowClockCoordinator) -> None:
    busy.heartbeat_of("last")
    busy.scheduler.advance(10_000)
    _, view = busy.consumer.describe("g")
    assert view is not None
    assert view.target_epoch == view.epoch
    assigned = sorted(number for each in view.targets.values() for number in each.get(topic_id("topic"), ()))
    assert assigned == list(range(10))


def test_sessions_do_not_end_while_the_group_is_busy(busy: SlowClockCoordinator) -> None:
    results = busy.heartbeat_of("last")
    assert results == []
    busy.is_slow = False
    # The sessions of all other members have ended.
    busy.scheduler.now_ms = 45_500
    busy.scheduler.advance(100)
    assert results[0].error is ErrorCode.NONE
    _, view = busy.consumer.describe("g")
    assert view is not None
    assert list(view.members) == ["last"]


@pytest.mark.parametrize("closes", [False, True])
def test_waiting_requests_are_rejected_when_the_shard_is_lost(
    busy: SlowClockCoordinator, closes: bool
) -> None:
    first, second = busy.heartbeat_of("first"), busy.heartbeat_of("second")
    joined: list[Any] = []
    synced: list[Any] = []
    deleted: list[Any] = []
    busy.classic.join("g", join_request(), joined.append)
    busy.classic.sync("g", sync_request("x", 1), synced.append)
    busy.delete_groups(["g"], deleted.append)
    assert not first and not second and not joined and not synced and not deleted
    if closes:
        busy.close()
    else:
        busy.unload(busy.shard_of("g"))
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if closes else ErrorCode.NOT_COORDINATOR
    assert [each.error for each in (*first, *second, *joined, *synced)] == [error] * 4
    assert deleted == [{"g": error}]
    busy.scheduler.advance(10_000)
    assert (len(first), len(second)) == (1, 1)


def test_a_failure_of_a_long_event_is_reported_and_the_group_goes_on(
    busy: SlowClockCoordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("kafka_compat.groups.consumer.members.same_partitions", lambda one, other: 1 / 0)
        results = busy.heartbeat_of("first")
        busy.scheduler.advance(10_000)
    assert [each.error for each in results] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "A request for group g failed" in caplog.text
    again = busy.heartbeat_of("first")
    busy.scheduler.advance(10_000)
    assert [each.error for each in again] == [ErrorCode.NONE]


def test_requests_that_wait_for_a_converted_group_are_answered_if_the_group_is_lost() -> None:
    coordinator = SlowClockCoordinator()
    waiting: list[JoinResult] = []
    first: list[JoinResult] = []
    coordinator.classic.join("g", join_request(), first.append)
    coordinator.scheduler.advance()
    coordinator.classic.join("g", join_request(), waiting.append)
    coordinator.is_slow = True
    joined = coordinator.heartbeat_of("m")
    assert (waiting, joined) == ([], [])
    coordinator.unload(coordinator.shard_of("g"))
    assert [each.error for each in waiting] == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert [each.error for each in joined] == [ErrorCode.NOT_COORDINATOR]


def test_many_groups_are_listed_in_steps() -> None:
    coordinator = SlowClockCoordinator()
    for number in range(250):
        coordinator.classic.join(f"g-{number}", join_request(), lambda result: None)
    steps = coordinator.list_groups_in_steps(set(), set())
    assert [next(steps) for _ in range(3)] == [None] * 3
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert len(stop.value.value[1]) == 250


def test_many_groups_learn_of_a_changed_topic_in_steps() -> None:
    coordinator = SlowClockCoordinator()
    groups = [f"g-{number}" for number in range(250)]
    for group in groups:
        request = Heartbeat("m", 0, "c", "/h", rebalance_timeout_ms=1_000, topic_names=("topic",), owned={})
        coordinator.consumer.heartbeat(group, request, lambda result: None)
        coordinator.consumer.heartbeat(group, Heartbeat("m", 2, "c", "/h"), lambda result: None)

    def informed() -> int:
        machines = [running.machine for running in coordinator._running.values()]
        return sum(machine.consumer.members._must_compare_hash for machine in machines)

    assert informed() == 0
    coordinator.is_slow = True
    coordinator.topics_changed(["topic"])
    assert 0 < informed() < len(groups)
    coordinator.scheduler.advance(1_000)
    assert informed() == len(groups)
