"""The state of a group member and the partition assignors, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from kafka_compat.client.group_consumer import Membership, assign_in_turn, assign_ranges
from kafka_compat.errors import ErrorCode, KafkaError

HEARTBEAT_INTERVAL_S = 3.0
TOPICS = ["a", "b", "c"]


def stable_member() -> Membership:
    member = Membership(HEARTBEAT_INTERVAL_S)
    assert not member.joined(ErrorCode.MEMBER_ID_REQUIRED, "member-1", -1)
    assert member.joined(ErrorCode.NONE, "member-1", 5)
    assert member.synced(ErrorCode.NONE, 10.0)
    return member


def test_a_member_rejoins_with_the_id_assigned_by_the_coordinator() -> None:
    member = Membership(HEARTBEAT_INTERVAL_S)
    assert not member.joined(ErrorCode.MEMBER_ID_REQUIRED, "member-1", -1)
    assert member.member_id == "member-1"


def test_a_heartbeat_is_due_one_interval_after_the_previous_response() -> None:
    member = stable_member()
    assert not member.is_heartbeat_due(12.9)
    assert member.is_heartbeat_due(13.0)
    assert member.heard(ErrorCode.NONE, 13.0)
    assert member.wait_s(14.0) == 2.0


def test_a_member_rejoins_under_its_id_in_a_rebalance() -> None:
    member = stable_member()
    assert not member.heard(ErrorCode.REBALANCE_IN_PROGRESS, 13.0)
    assert (member.is_stable, member.member_id) == (False, "member-1")


def test_an_unknown_member_rejoins_without_an_id() -> None:
    member = stable_member()
    assert not member.heard(ErrorCode.UNKNOWN_MEMBER_ID, 13.0)
    assert (member.is_stable, member.member_id, member.generation_id) == (False, "", -1)


def test_a_member_without_permission_raises_an_error() -> None:
    member = Membership(HEARTBEAT_INTERVAL_S)
    with pytest.raises(KafkaError) as caught:
        member.joined(ErrorCode.GROUP_AUTHORIZATION_FAILED, "", -1)
    assert caught.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED


SUBSCRIPTIONS = strategies.dictionaries(
    strategies.sampled_from([f"member-{number}" for number in range(4)]),
    strategies.lists(strategies.sampled_from(TOPICS), min_size=1, unique=True),
    min_size=1,
)
COUNTS = strategies.fixed_dictionaries({topic: strategies.integers(0, 7) for topic in TOPICS})


@given(SUBSCRIPTIONS, COUNTS)
def test_both_assignors_assign_each_partition_to_one_subscribed_member(
    members: dict[str, list[str]], counts: dict[str, int]
) -> None:
    subscribed = {topic for topics in members.values() for topic in topics}
    expected = [(topic, number) for topic in sorted(subscribed) for number in range(counts[topic])]
    for assign in (assign_ranges, assign_in_turn):
        found = assign(members, counts)
        assert sorted(partition for partitions in found.values() for partition in partitions) == expected
        assert all(topic in members[member] for member in found for topic, _ in found[member])


def test_the_range_assignor_gives_extra_partitions_to_the_first_members() -> None:
    found = assign_ranges({"x": ["a"], "y": ["a"], "z": ["a"]}, {"a": 5})
    assert found == {"x": [("a", 0), ("a", 1)], "y": [("a", 2), ("a", 3)], "z": [("a", 4)]}


def test_the_round_robin_assignor_assigns_partitions_of_all_topics_to_members_in_turn() -> None:
    found = assign_in_turn({"x": ["a", "b"], "y": ["b"]}, {"a": 2, "b": 3})
    assert found == {"x": [("a", 0), ("a", 1), ("b", 1)], "y": [("b", 0), ("b", 2)]}
