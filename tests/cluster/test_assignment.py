"""Replica placement for new partitions."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.assignment import alternating, assign_replicas
from kafka_compat.metadata.cache import BrokerMetadata
from kafka_compat.metadata.topic_rules import added_replicas, replicas_for

SIX_IN_THREE_RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_without_racks_leaders_rotate_and_followers_are_shifted() -> None:
    """The table in Kafka's documentation of replica placement."""
    racks = dict.fromkeys(range(5))
    assert assign_replicas(racks, 10, 3, start=0, shift=0) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_with_racks_each_rack_gets_a_replica() -> None:
    """The example in KIP-36."""
    assert alternating(SIX_IN_THREE_RACKS) == [0, 3, 1, 5, 4, 2]
    assert assign_replicas(SIX_IN_THREE_RACKS, 7, 3, start=0, shift=0) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.data())
def test_replicas_are_on_different_brokers_and_spread_over_racks(
    letters: list[str], data: st.DataObject
) -> None:
    racks: dict[int, str | None] = dict(enumerate(letters))
    replicas = data.draw(st.integers(1, len(racks)))
    for assigned in assign_replicas(racks, data.draw(st.integers(1, 30)), replicas):
        assert len(set(assigned)) == replicas
        used = Counter(racks[broker] for broker in assigned)
        assert len(used) == min(replicas, len(set(letters)))


def test_small_topics_are_not_all_assigned_to_the_same_broker() -> None:
    leaders = {assign_replicas({1: None, 2: None, 3: None}, 1, 2)[0][0] for _ in range(200)}
    assert leaders == {1, 2, 3}


def brokers(*racks: str | None) -> dict[int, BrokerMetadata]:
    return {broker_id: BrokerMetadata(broker_id, {}, rack) for broker_id, rack in enumerate(racks, 1)}


def test_assignment_fails_if_only_some_brokers_have_racks() -> None:
    config = BrokerConfig.from_properties({"broker.id": "1"})
    with pytest.raises(KafkaError) as refused:
        replicas_for(config, brokers("a", "b", None), 1, 2, None)
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert replicas_for(config, brokers("a", "b", None), -1, -1, {0: (1, 3)}) == {0: (1, 3)}


def test_assignment_of_new_partitions_continues_after_the_existing_partitions() -> None:
    present = [(2, 3), (3, 1), (1, 2)]
    assert added_replicas(present, 5, None, brokers(None, None, None)) == {3: (2, 3), 4: (3, 1)}


def test_partitions_are_not_added_if_there_are_fewer_brokers_than_replicas() -> None:
    with pytest.raises(KafkaError) as refused:
        added_replicas([(1, 2, 3)], 2, None, brokers(None, None))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
