"""kafka-console-consumer and the other commands for records, groups and transactions print and end as Kafka's
own do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.tools import data_lines
from tests.tools.compare import Comparison
from tests.tools.world import Pair, Side

NEWER = "4.1.0"
"""Whose kafka-consumer-groups ends the rows of its tables, which 3.9 forgot."""

DRAWN = {
    # What takes how long.
    r"^(\d+) records sent, .*latency.*": r"\1 records sent",
    r"^[\d:. -]+, [\d:. -]+, (\d+\.\d+), [\d.]+, (\d+), .*": r"\1, \2",
    r"\t(\d{13}) *\t(\d+) *\t": r"\t\1\tFOR\t",
    # Drawn by lot, or of the machine.
    r"(perf-consumer|console-consumer)-\d+": r"\1-N",
    r"^(null|Tools\$Exited)$": "",
}
"""What must differ."""


@pytest.fixture(scope="module", params=["ours", "genuine"] if campaign.enabled() else ["ours"])
def side(request: pytest.FixtureRequest, pair: Pair) -> Side:
    """Our broker, and the genuine one."""
    return next(side for side in pair.sides if side.name == request.param)


@pytest.fixture(scope="module")
def files(side: Side, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    data_lines.write_files(folder, side.address)
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def numbers(pair: Pair) -> None:
    """On both, so that they stay alike."""
    for side in pair.sides:
        data_lines.make_numbers(side.address)


@pytest.fixture
def newer_tools() -> Iterator[JavaTools]:
    tools = JavaTools(NEWER)
    yield tools
    tools.close()


@pytest.mark.parametrize("tool", data_lines.TOOLS)
def test_it_is_as_genuine_ones_are(side: Side, files: str, tool: str) -> None:
    comparison = Comparison(side.tools, side.address, files)
    text = data_lines.with_logs(data_lines.lines(tool), side.log_dirs)
    found = comparison.differences(text, DRAWN)
    assert not found, "\n".join(found)


def test_rows_of_moved_offsets_are_as_those_of_newer_ones(
    side: Side, files: str, newer_tools: JavaTools
) -> None:
    comparison = Comparison(newer_tools, side.address, files)
    found = comparison.differences(data_lines.lines("moved-offsets"))
    assert not found, "\n".join(found)
