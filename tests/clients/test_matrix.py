"""Every client runs every scenario against this broker and Apache Kafka 3.9.1, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clients.lane import Lane, Observations, attempted
from tests.clients.lane_pool import LanePool
from tests.clients.programs import CLIENTS
from tests.clients.scenarios import NEEDS, produce_and_consume
from tests.support import campaign

EVERYDAY = (produce_and_consume,)
"""The daily scenarios of clients that run all scenarios only in campaigns."""
CASES = [
    pytest.param(name, scenario, id=f"{name}-{scenario.__name__}")
    for name, kind in CLIENTS.items()
    for scenario, needed in NEEDS.items()
    if needed <= kind.features
]


SLOW = {("kafka-python", "cooperative_group_life"), ("kafka-python", "round_robin_over_two_topics")}
"""Scenarios that take a client about 15 seconds. Other clients run them daily in a few seconds."""


@pytest.mark.parametrize(("client", "scenario"), CASES)
def test_each_client_gets_the_same_results_as_on_apache_kafka(
    lane_pool: LanePool, client: str, scenario: Callable[[Lane], Observations]
) -> None:
    kind = CLIENTS[client]
    is_everyday = (kind.everyday or scenario in EVERYDAY) and (client, scenario.__name__) not in SLOW
    if not (is_everyday or campaign.enabled()):
        pytest.skip("needs --campaign")
    lanes = lane_pool.lanes(kind)
    with ThreadPoolExecutor(2) as both:
        outcomes = [both.submit(attempted, scenario, lane) for lane in lanes]
        observed = [outcome.result() for outcome in outcomes]
    assert observed[0] == observed[-1]
