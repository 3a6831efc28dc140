"""Monitors and consoles with one broker, compared with Apache Kafka 3.9.1: the same output and the same
effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consoles.broker_content import SHOWN
from tests.consoles.monitors import (
    KMINION_MODES,
    burrow_differences,
    kafka_exporter_differences,
    kminion_differences,
    kminion_probe_differences,
)
from tests.consoles.redpanda import redpanda_console_differences
from tests.consoles.screen import kaskade_differences
from tests.consoles.sides import Sides
from tests.consoles.terminal import TOOLS, terminal_differences
from tests.support import campaign
from tests.tools.world import SETTINGS, Pair

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")

_ALIKE = {"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1"}
"""Settings that are otherwise set only for Apache Kafka."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    pair = Pair(tmp_path_factory.mktemp("consoles"), {**SETTINGS, **SHOWN, **_ALIKE})
    found = Sides({side.name: (side.address, side.folder, side.tools) for side in pair.sides})
    yield found
    found.close()
    pair.close()


# Tests that only read come first. The others leave different records in the internal topics of each side,
# because group members join and leave at varying times.


def test_kafka_exporter_shows_the_same_data_as_for_apache_kafka(sides: Sides, tmp_path: Path) -> None:
    _none(kafka_exporter_differences(sides, tmp_path))


@pytest.mark.parametrize("mode", KMINION_MODES)
def test_kminion_shows_the_same_data_as_for_apache_kafka(sides: Sides, mode: str, tmp_path: Path) -> None:
    _none(kminion_differences(sides, tmp_path, mode))


def test_burrow_shows_the_same_data_as_for_apache_kafka(sides: Sides, tmp_path: Path) -> None:
    _none(burrow_differences(sides, tmp_path))


def test_redpanda_console_shows_the_same_data_as_for_apache_kafka(sides: Sides, tmp_path: Path) -> None:
    _none(redpanda_console_differences(sides, tmp_path))


def test_kaskade_shows_the_same_data_as_for_apache_kafka(sides: Sides, tmp_path: Path) -> None:
    _none(kaskade_differences(sides, tmp_path))


@pytest.mark.parametrize("tool", TOOLS)
def test_terminal_consoles_show_the_same_data_as_for_apache_kafka(
    sides: Sides, tool: str, tmp_path: Path
) -> None:
    _none(terminal_differences(sides, tmp_path, tool))


def test_kminion_probes_show_the_same_data_as_for_apache_kafka(sides: Sides, tmp_path: Path) -> None:
    _none(kminion_probe_differences(sides, tmp_path))


def _none(differences: list[str]) -> None:
    assert not differences, "\n".join(differences)
