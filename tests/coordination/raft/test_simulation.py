"""Simulated quorums keep the invariants and make progress (see `raft_simulation` and `raft_invariants`)."""

from __future__ import annotations

import pytest

from tests.coordination.raft.raft_simulation import SCENARIOS, simulate
from tests.support import campaign


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("index", range(len(SCENARIOS)), ids=lambda index: SCENARIOS[index].__name__)
def test_a_quorum_keeps_its_invariants_under_faults(index: int) -> None:
    for turn in range(campaign.rounds(3, 1000)):
        seed = turn * len(SCENARIOS) + index
        try:
            simulate(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
