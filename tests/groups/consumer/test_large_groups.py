"""The target assignment of a large group is computed in the background, and equals that of a small group."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.consumer.state import ConsumerGroupState, View
from kafka_compat.groups.consumer.target_assignment import finished
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.settings import GroupSettings
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.consumer.topics import consumer_groups, topic
from tests.groups.memory import WALL_MS, ManualScheduler

MEMBERS = 800
PARTITIONS = 100


class SteppingScheduler(ManualScheduler):
    """A scheduler whose clock advances by a millisecond with each reading: long work takes many turns."""

    def monotonic_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms


class LargeGroup:
    """A group whose members subscribe to one topic. Assignments need no interval."""

    def __init__(self, members: int = MEMBERS, partitions: int = PARTITIONS) -> None:
        self.log = ReplicatedLog()
        self.scheduler = SteppingScheduler()
        self.common = consumer_groups(topic("t", partitions), assignment_interval_ms=0)
        self.coordinator = GroupCoordinator(
            coordinator_log=self.log,
            scheduler=self.scheduler,
            settings=GroupSettings(),
            now_ms=lambda: WALL_MS + self.scheduler.now_ms,
            partition_exists=lambda name, partition: True,
            consumer_groups=self.common,
        )
        self.coordinator.load(0)
        self.scheduler.advance()
        for number in range(members):
            self.join(f"member-{number:04}")
        if members:
            self.assign()

    def join(self, member_id: str, instance_id: str | None = None) -> list[HeartbeatResult]:
        return self.beat(member_id, 0, instance_id, topics=("t",))

    def beat(
        self,
        member_id: str,
        epoch: int,
        instance_id: str | None = None,
        topics: tuple[str, ...] | None = None,
    ) -> list[HeartbeatResult]:
        """Send a heartbeat whose records are replicated. Return a list that gets its result."""
        results: list[HeartbeatResult] = []
        request = Heartbeat(
            member_id,
            epoch,
            "client",
            "/127.0.0.1",
            instance_id,
            rebalance_timeout_ms=60_000 if topics else -1,
            topic_names=topics,
            owned={} if topics else None,
        )
        self.coordinator.consumer_heartbeat("g", request, results.append)
        self.log.replicate(1_000_000)
        return results

    def finish_computation(self) -> None:
        """Let the background work end."""
        for _ in range(1_000):
            self.scheduler.run_next()
        self.log.replicate(1_000_000)

    def assign(self) -> None:
        """Let heartbeats cause computations until the target assignment is up to date."""
        self.finish_computation()
        while self.view.target_epoch < self.view.epoch:
            member_id, member = next(iter(self.view.members.items()))
            self.beat(member_id, member.epoch)
            self.finish_computation()

    @property
    def view(self) -> View:
        _, view = self.coordinator.describe_consumer_group("g")
        assert view is not None
        return view

    def assigned(self) -> list[int]:
        """Return the partitions in the targets of all members, in order."""
        return sorted(
            partition
            for target in self.view.targets.values()
            for each in target.values()
            for partition in each
        )


def test_a_large_group_gets_the_assignment_that_a_heartbeat_would_compute() -> None:
    group = LargeGroup()
    targets, members = group.view.targets, group.view.members
    group.join("late")
    group.finish_computation()
    view = group.view
    assert view.epoch == view.target_epoch
    ordered = group.coordinator._running["g"].machine.consumer.state.ordered_members()
    assert ordered.keys() == {*members, "late"}
    expected = finished(group.common.assign("uniform", ordered, targets, lambda regex: frozenset()))
    assert view.targets == expected
    assert group.assigned() == list(range(PARTITIONS))


def test_only_the_heartbeat_that_causes_the_computation_waits_for_it() -> None:
    group = LargeGroup()
    before = group.view
    late = group.join("late")
    assert late == []
    assert group.view.state is ConsumerGroupState.ASSIGNING
    (later,) = group.join("later")
    assert (later.error, later.member_epoch, later.assignment) == (ErrorCode.NONE, before.target_epoch, {})
    group.finish_computation()
    (result,) = late
    assert (result.error, result.member_epoch) == (ErrorCode.NONE, before.target_epoch + 1)


def test_the_first_member_of_a_group_gets_many_partitions_with_its_first_heartbeat() -> None:
    group = LargeGroup(members=0, partitions=5_000)
    first = group.join("first")
    assert first == []
    (second,) = group.join("second")
    assert (second.error, second.member_epoch, second.assignment) == (ErrorCode.NONE, 1, {})
    group.finish_computation()
    (result,) = first
    assert (result.error, result.member_epoch) == (ErrorCode.NONE, 2)
    assert result.assignment is not None
    assert sum(map(len, result.assignment.values())) == 5_000


def test_a_static_member_that_returns_during_the_computation_takes_the_part_of_its_predecessor() -> None:
    group = LargeGroup()
    group.join("static-1", "instance")
    group.finish_computation()
    group.beat("static-1", -2, "instance")
    group.join("late")
    (returned,) = group.join("static-2", "instance")
    assert returned.error is ErrorCode.NONE
    group.finish_computation()
    view = group.view
    assert "static-1" not in view.targets
    assert view.targets.keys() == view.members.keys()
    assert group.assigned() == list(range(PARTITIONS))


def test_the_assignment_is_computed_again_if_a_part_of_it_could_not_be_stored() -> None:
    group = LargeGroup()
    before = group.view
    owners = [each for each, target in before.targets.items() if target]
    for member_id in owners[:50]:
        group.beat(member_id, -1)
    waiting = group.beat(owners[60], before.members[owners[60]].epoch)
    assert waiting == []
    group.log.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    group.finish_computation()
    assert [each.error for each in waiting] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert group.view.target_epoch == before.target_epoch
    group.log.refuses = None
    group.assign()
    assert group.assigned() == list(range(PARTITIONS))


def test_members_that_leave_during_the_computation_get_no_target() -> None:
    group = LargeGroup()
    leaving = [each for each, target in group.view.targets.items() if target][:20]
    late = group.join("late")
    group.beat("late", -1)
    for member_id in leaving:
        group.beat(member_id, -1)
    group.finish_computation()
    assert [each.error for each in late] == [ErrorCode.UNKNOWN_MEMBER_ID]
    group.assign()
    view = group.view
    assert view.targets.keys() == view.members.keys()
    assert group.assigned() == list(range(PARTITIONS))


def test_a_coordinator_that_loses_the_group_rejects_the_waiting_heartbeat() -> None:
    group = LargeGroup()
    late = group.join("late")
    group.coordinator.unload(0)
    assert [each.error for each in late] == [ErrorCode.NOT_COORDINATOR]
    group.finish_computation()
    assert len(late) == 1
