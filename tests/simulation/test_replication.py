"""Replication with crashes, lost data, network partitions and leader changes, in a simulation that detects
planted faults.
"""

from __future__ import annotations

import pytest

from tests.simulation.cluster import Cluster
from tests.support import campaign

SEEDS = campaign.rounds(15, 1000)
STEPS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("terms", [False, True], ids=["scripted", "terms"])
def test_logs_agree_below_the_high_watermark_and_keep_acknowledged_records(seed: int, terms: bool) -> None:
    cluster = Cluster(seed, terms=terms)
    cluster.live(STEPS)
    cluster.heal()
    assert cluster.producer is not None
    acknowledged = len(cluster.acknowledged) + cluster.producer.acknowledged
    assert acknowledged, "no record was acknowledged, so nothing was tested"


@pytest.mark.parametrize("seed", range(campaign.rounds(10, 300)))
def test_replicas_eventually_converge_after_unclean_elections(seed: int) -> None:
    cluster = Cluster(seed, terms=True, unclean=True)
    cluster.live(STEPS)
    cluster.heal()
