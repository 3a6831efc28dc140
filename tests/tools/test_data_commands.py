"""kafka-console-consumer and the other commands for records, groups and transactions: output and exit code
are the same as with Kafka's commands.
"""

from __future__ import annotations

import pytest

from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.tools import data_lines
from tests.tools.compare import Comparison
from tests.tools.world import Pair, Side

DRAWN = {
    # Durations and rates.
    r"^(\d+ (?:steady state )?records sent), .*latency.*": r"\1",
    r"^[\d:. -]+, [\d:. -]+, (\d+\.\d+), [\d.]+, (\d+), .*": r"\1, \2",
    r"\t(\d{13}) *\t(\d+) *\t": r"\t\1\tFOR\t",
    # Random or machine-dependent values.
    r"(perf-consumer|console-consumer)-\d+": r"\1-N",
    r"^(null|Tools\$Exited)$": "",
}
"""Expressions for values that must differ, with their replacements."""
SAID_SINCE = dict.fromkeys(
    (r"^(Warning: |Option )--\S+ is deprecated", r"^Consuming with the classic group protocol")
)
"""Warnings of newer tools about flags that 3.9 has, too."""


@pytest.fixture(scope="module", params=campaign.sides())
def side(request: pytest.FixtureRequest, pair: Pair) -> Side:
    """This project's broker; in campaigns, also Apache Kafka."""
    return next(side for side in pair.sides if side.name == request.param)


@pytest.fixture(scope="module")
def files(side: Side, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    data_lines.write_files(folder, side.address)
    data_lines.make_indexes(side.log_dirs)
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def numbers(pair: Pair) -> None:
    """Create the topic on both brokers, so that their states remain equal."""
    for side in pair.sides:
        data_lines.make_numbers(side.address)


@pytest.mark.parametrize("tool", data_lines.TOOLS)
def test_commands_print_the_same_output_as_kafka(
    side: Side, files: str, newest: JavaTools, tool: str
) -> None:
    comparison = Comparison(newest, side.address, files)
    text = data_lines.with_logs(data_lines.lines(tool), side.log_dirs)
    found = comparison.differences(text, DRAWN)
    assert not found, "\n".join(found)


def test_commands_with_flags_removed_in_kafka_4_print_the_same_output_as_kafka(
    side: Side, files: str
) -> None:
    comparison = Comparison(side.tools, side.address, files)
    text = data_lines.with_logs(data_lines.lines("dropped-data"), side.log_dirs)
    found = comparison.differences(text, {**DRAWN, **SAID_SINCE})
    assert not found, "\n".join(found)
