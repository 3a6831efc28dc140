"""Random groups, compared with Kafka's own assignors: equal partitions, and records in the same order."""

from __future__ import annotations

import pytest

from kafka_compat.groups.consumer.assignors.assignor import Assignor
from kafka_compat.groups.consumer.assignors.range import RangeAssignor
from kafka_compat.groups.consumer.assignors.uniform import UniformAssignor
from tests.groups.consumer.random_group import RandomGroup
from tests.oracle.consumer_group_oracle import ConsumerGroupOracle
from tests.support.campaign import rounds

_CHANGES = 6
"""Number of target assignments per group. Each one is the current assignment of the next."""


@pytest.mark.parametrize("assignor", [UniformAssignor(), RangeAssignor()], ids=lambda found: found.name)
def test_groups_have_the_same_target_assignments_as_in_kafka(
    kafka: ConsumerGroupOracle, assignor: Assignor
) -> None:
    for seed in range(rounds(200, 5_000)):
        _compare(kafka, assignor, RandomGroup(seed))


def test_large_groups_have_the_same_target_assignments_as_in_kafka(kafka: ConsumerGroupOracle) -> None:
    """Some members have so many partitions in the same bin of a hash table that the bin becomes a tree."""
    for seed in range(rounds(6, 200)):
        _compare(kafka, UniformAssignor(), RandomGroup.large(seed))


def _compare(kafka: ConsumerGroupOracle, assignor: Assignor, group: RandomGroup) -> None:
    for number in range(_CHANGES):
        answer, target = group.answer(assignor)
        assert answer == kafka.ask(**group.question(assignor.name)), (group.seed, number)
        group.store(target)
        group.change()
