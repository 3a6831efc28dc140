"""The leader election rules, as a table."""

import pytest

from kafka_compat.coordination.controller import leader_election
from kafka_compat.coordination.controller.leader_election import Elected, elect_on_shutdown, elect_preferred


@pytest.mark.parametrize(
    ("replicas", "isr", "alive", "unclean", "elected"),
    [
        ([1, 2, 3], [1, 2, 3], [1, 2, 3], False, Elected(1, (1, 2, 3))),
        ([1, 2, 3], [1, 2, 3], [2, 3], False, Elected(2, (2, 3))),
        ([3, 2, 1], [1, 2], [1, 2, 3], False, Elected(2, (1, 2))),
        ([1, 2, 3], [1], [2, 3], False, None),
        ([1, 2, 3], [1], [2, 3], True, Elected(2, (2,), unclean=True)),
        ([1, 2, 3], [3], [2, 3], True, Elected(3, (3,))),
        ([1, 2], [1, 2], [], True, None),
        ([1], [], [1], False, None),
    ],
)
def test_a_leader_is_elected_from_the_isr(
    replicas: list[int], isr: list[int], alive: list[int], unclean: bool, elected: Elected | None
) -> None:
    assert leader_election.elect_leader(replicas, isr, alive, unclean_allowed=unclean) == elected


def test_the_preferred_leader_is_the_first_replica_if_it_is_alive_and_in_sync() -> None:
    assert elect_preferred([2, 1], [1, 2], [1, 2]) == Elected(2, (1, 2))
    assert elect_preferred([2, 1], [1], [1, 2]) is None
    assert elect_preferred([2, 1], [1, 2], [1]) is None


def test_a_broker_that_is_shutting_down_hands_over_leadership_and_leaves_the_isr() -> None:
    assert elect_on_shutdown([1, 2, 3], [1, 2, 3], [1, 2, 3], leaving=[1]) == Elected(2, (2, 3))
    assert elect_on_shutdown([1, 2], [1], [1, 2], leaving=[1]) is None


def test_a_reassignment_waits_until_one_of_its_replicas_is_in_sync() -> None:
    assert leader_election.elect_for_reassignment([4, 5], [1, 5], [1, 4, 5]) == Elected(5, (1, 5))
    assert leader_election.elect_for_reassignment([4, 5], [1], [1, 4, 5]) is None
