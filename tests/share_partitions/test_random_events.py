"""A share-partition agrees with a model of single offsets after random events."""

import pytest

from tests.share_partitions.offsets_model import Run


@pytest.mark.parametrize("seed", range(40))
def test_every_record_is_acquired_once_at_a_time_and_none_is_lost(seed: int) -> None:
    run = Run(seed)
    for _ in range(250):
        run.step()
    assert run.deliveries > 20
