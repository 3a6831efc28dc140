"""Debezium's engine, which resumes from its offsets in a topic after kills. It reads a file, because
the registries provide no database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others import java_programs, scenarios
from tests.others.flow import Flow
from tests.others.suite import Outcomes, Side, Suite
from tests.support import kafka_jars
from tests.support.kafka_jars import DEBEZIUM_VERSION, NEWEST_VERSION
from tests.support.servers import Server


@dataclass
class _FileFlow(Flow):
    """A flow whose numbers are lines of a file."""

    file: Path

    def _put(self, numbers: Sequence[int]) -> None:
        with self.file.open("a") as output:
            output.write("".join(f"{number}\n" for number in numbers))


def _lines(broker: Server, directory: Path) -> None:
    """Each line is delivered, and the engine does not start from the beginning after a kill."""
    class_path = java_programs.compiled("DebeziumLines", kafka_jars.debezium(), directory)
    flow = _FileFlow(broker, "debezium", directory / "lines.txt")
    flow.create_topics()
    arguments = (broker.address, str(flow.file), "debezium-offsets", flow.counts)
    flow.with_kills(
        lambda: java_programs.started("DebeziumLines", class_path, directory / "engine.log", *arguments)
    )
    flow.check_at_least_once()
    flow.check_few_repeated()


def run(side: Side, directory: Path) -> Outcomes:
    """Play the scenario on one broker."""
    name = "the engine resumes from its offsets when the broker and the engine are killed"
    return scenarios.play_on_one_broker({name: _lines}, side, directory)


SUITE = Suite(
    name="Debezium",
    version=DEBEZIUM_VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/debezium/debezium",
    tests="scenarios",
)
