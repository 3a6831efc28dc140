"""Every client runs every scenario against our broker and genuine Kafka 3.9.1, and must see the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clients.conftest import LanePool
from tests.clients.programs import CLIENTS
from tests.clients.scenarios import NEEDS, Lane, Observations

CASES = [
    pytest.param(name, scenario, id=f"{name}-{scenario.__name__}")
    for name, kind in CLIENTS.items()
    for scenario, needed in NEEDS.items()
    if needed <= kind.features
]


@pytest.mark.parametrize(("client", "scenario"), CASES)
def test_client_sees_the_same_as_on_genuine_kafka(
    lane_pool: LanePool, client: str, scenario: Callable[[Lane], Observations]
) -> None:
    lanes = lane_pool.lanes(CLIENTS[client])
    with ThreadPoolExecutor(2) as both:
        observed = [outcome.result() for outcome in [both.submit(_attempt, scenario, lane) for lane in lanes]]
    assert observed[0] == observed[-1]


def _attempt(scenario: Callable[[Lane], Observations], lane: Lane) -> Observations:
    """What the scenario observed; tried again only with a client that is known to stall by itself."""
    for _ in range(lane.program.kind.attempts - 1):
        try:
            return scenario(lane)
        except AssertionError:
            continue
    return scenario(lane)
