"""Monitors and consoles with three brokers, compared with three brokers of Apache Kafka 3.9.1: with all
brokers running, and with one stopped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.pair import running
from tests.consoles.broker_content import SHOWN
from tests.consoles.monitors import (
    KMINION_MODES,
    burrow_differences,
    kafka_exporter_differences,
    kminion_differences,
)
from tests.consoles.redpanda import redpanda_console_differences
from tests.consoles.screen import kaskade_differences
from tests.consoles.sides import Sides
from tests.consoles.terminal import TOOLS, terminal_differences
from tests.support import campaign
from tests.tools.clusters import CLUSTER_SETTINGS, Clusters

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")

_GONE = 3


@pytest.fixture(scope="module", params=["all are up", "one is gone"])
def sides(request: pytest.FixtureRequest, both: tuple[Clusters, Sides]) -> Sides:
    clusters, found = both
    if request.param == "one is gone":
        clusters.stop(_GONE)
        clusters.until("alpha", 1, [1, 2])
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Clusters, Sides]]:
    with running(tmp_path_factory.mktemp("consoles"), {**CLUSTER_SETTINGS, **SHOWN}) as pair:
        clusters = Clusters(pair)
        sides = Sides({side.name: (side.alive, side.folder, side.tools) for side in pair.sides})
        yield clusters, sides
        sides.close()
        clusters.close()


_LOOKS: dict[str, Callable[[Sides, Path], list[str]]] = {
    "kafka_exporter": kafka_exporter_differences,
    **{f"kminion by {mode}": functools.partial(kminion_differences, mode=mode) for mode in KMINION_MODES},
    "burrow": burrow_differences,
    "redpanda-console": functools.partial(redpanda_console_differences, actions=False),
    "kaskade": kaskade_differences,
    **{tool: functools.partial(terminal_differences, tool=tool, actions=False) for tool in TOOLS},
}


@pytest.mark.parametrize("tool", _LOOKS)
def test_each_console_shows_the_same_for_three_brokers(sides: Sides, tool: str, tmp_path: Path) -> None:
    differences = _LOOKS[tool](sides, tmp_path)
    assert not differences, "\n".join(differences)
