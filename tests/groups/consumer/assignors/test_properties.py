"""Properties of all target assignments: complete, balanced and stable."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.groups.consumer.assignors.assignor import (
    Assignor,
    GroupSpec,
    MemberSpec,
    PartitionAssignorError,
    TargetAssignment,
)
from kafka_compat.groups.consumer.assignors.range import RangeAssignor
from kafka_compat.groups.consumer.assignors.uniform import UniformAssignor
from tests.groups.consumer.random_group import RandomGroup, finished

assignors = pytest.mark.parametrize(
    "assignor", [UniformAssignor(), RangeAssignor()], ids=lambda found: found.name
)
seeds = st.integers(0, 1 << 32)


def _sizes(target: TargetAssignment) -> list[int]:
    return [sum(map(len, assignment.values())) for assignment in target.values()]


def _changed_group(seed: int, assignor: Assignor) -> RandomGroup:
    """Return a group with current assignments, which then changed."""
    group = RandomGroup(seed)
    group.store(finished(assignor.assign(group.spec(), group.partition_counts())))
    group.change()
    return group


@assignors
@settings(deadline=None)
@given(seed=seeds)
def test_every_partition_of_a_subscribed_topic_has_one_member(assignor: Assignor, seed: int) -> None:
    group = _changed_group(seed, assignor)
    spec, counts = group.spec(), group.partition_counts()
    target = finished(assignor.assign(spec, counts))
    assert set(target) == set(spec.members)
    owners = Counter(
        (topic_id, partition)
        for assignment in target.values()
        for topic_id, partitions in assignment.items()
        for partition in partitions
    )
    subscribed = {topic_id for member in spec.members.values() for topic_id in member.subscribed_topic_ids}
    assert owners == Counter(
        (topic_id, partition) for topic_id in subscribed for partition in range(counts[topic_id])
    )
    for member_id, assignment in target.items():
        assert assignment.keys() <= set(spec.members[member_id].subscribed_topic_ids)
        assert all(assignment.values())


@assignors
@settings(deadline=None)
@given(seed=seeds)
def test_an_unchanged_group_keeps_the_same_assignment_objects(assignor: Assignor, seed: int) -> None:
    group = _changed_group(seed, assignor)
    for _ in range(20):  # While subscriptions overlap, the uniform assignor may need several attempts.
        target = finished(assignor.assign(group.spec(), group.partition_counts()))
        changed = [name for name, member in group.members.items() if target[name] is not member.target]
        group.store(target)
        if not changed:
            break
    assert not changed


@settings(deadline=None)
@given(seed=seeds)
def test_uniform_members_have_equally_many_partitions_and_keep_theirs(seed: int) -> None:
    assignor = UniformAssignor()
    group = _changed_group(seed, assignor)
    spec, counts = group.spec(), group.partition_counts()
    if not spec.is_homogeneous or not spec.members:
        return
    target = finished(assignor.assign(spec, counts))
    assert max(_sizes(target)) - min(_sizes(target)) <= 1
    quota = min(_sizes(target))
    for member_id, assignment in target.items():
        member = spec.members[member_id]
        pairs = {(topic_id, partition) for topic_id, held in assignment.items() for partition in held}
        before = {
            (topic_id, partition)
            for topic_id, held in member.assignment.items()
            if topic_id in member.subscribed_topic_ids
            for partition in held
        }
        assert len(before & pairs) >= min(len(before), quota)


@settings(deadline=None)
@given(seed=seeds)
def test_subscribers_of_a_topic_are_balanced_when_uniform_moves_its_partitions(seed: int) -> None:
    """A subscriber with at least two partitions more than another has none of the topic."""
    assignor = UniformAssignor()
    group = _changed_group(seed, assignor)
    spec = group.spec()
    for _ in range(20):
        target = finished(assignor.assign(group.spec(), group.partition_counts()))
        group.store(target)
    sizes = dict(zip(target, _sizes(target), strict=True))
    for member_id, assignment in target.items():
        for topic_id in assignment:
            for other, member in spec.members.items():
                if topic_id in member.subscribed_topic_ids:
                    assert sizes[member_id] - sizes[other] <= 1


@settings(deadline=None)
@given(seed=seeds)
def test_range_members_have_consecutive_partitions_of_each_topic(seed: int) -> None:
    group = _changed_group(seed, RangeAssignor())
    target = finished(RangeAssignor().assign(group.spec(), group.partition_counts()))
    for assignment in target.values():
        for partitions in assignment.values():
            first, last = min(partitions), max(partitions)
            assert sorted(partitions) == list(range(first, last + 1))


def test_range_sorts_static_members_before_dynamic_ones() -> None:
    topic_id = UUID(int=7)
    members = {
        "a": MemberSpec(None, None, (topic_id,), 1, {}),
        "b": MemberSpec("instance-2", None, (topic_id,), 1, {}),
        "c": MemberSpec("instance-1", None, (topic_id,), 1, {}),
    }
    target = finished(RangeAssignor().assign(GroupSpec(members, True), {topic_id: 4}))
    assert target == {"c": {topic_id: (0, 1)}, "b": {topic_id: (2,)}, "a": {topic_id: (3,)}}


@assignors
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_an_unknown_topic_is_an_error(assignor: Assignor, is_homogeneous: bool) -> None:
    members = {"a": MemberSpec(None, None, (UUID(int=7),), 1, {})}
    with pytest.raises(PartitionAssignorError, match=str(UUID(int=7))):
        finished(assignor.assign(GroupSpec(members, is_homogeneous), {}))


@assignors
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_large_groups_are_assigned_in_many_steps(assignor: Assignor, is_homogeneous: bool) -> None:
    topic_id = UUID(int=7)
    subscribed = (topic_id,)
    members = {f"member-{index}": MemberSpec(None, None, subscribed, 1, {}) for index in range(10_000)}
    steps = assignor.assign(GroupSpec(members, is_homogeneous), {topic_id: 10_000})
    assert sum(1 for _ in steps) > 100
