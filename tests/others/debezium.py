"""Debezium's engine with its offsets in a topic, from which it resumes over kills. It reads a file, because
the registries provide no database.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others import scenarios
from tests.others.flow import Flow
from tests.others.program import Program
from tests.others.servers import SMALL, one_broker
from tests.others.suite import Outcomes, Side, Suite
from tests.support import java, kafka_jars
from tests.support.kafka_jars import DEBEZIUM_VERSION, NEWEST_VERSION
from tests.support.servers import Server

_SOURCE = Path(__file__).with_name("programs") / "DebeziumLines.java"


@dataclass
class _FileFlow(Flow):
    """A flow whose numbers are lines of a file."""

    file: Path

    def _put(self, numbers: Sequence[int]) -> None:
        with self.file.open("a") as output:
            output.write("".join(f"{number}\n" for number in numbers))


def _lines(broker: Server, directory: Path) -> None:
    """Each line is delivered, and the engine does not start from the beginning after a kill."""
    jars = f"{kafka_jars.debezium()}/*"
    subprocess.run([*java.QUICK_COMPILER, "-cp", jars, "-d", str(directory), str(_SOURCE)], check=True)
    flow = _FileFlow(broker, "debezium", directory / "lines.txt")
    flow.create_topics()
    line = [
        "java",
        "-Xmx256M",
        *java.QUICK_START,
        java.log_option(),
        "-cp",
        f"{jars}:{directory}",
        "DebeziumLines",
    ]
    arguments = [broker.address, str(flow.file), "debezium-offsets", flow.counts]
    flow.over_kills(lambda: Program(directory / "engine.log", [*line, *arguments]))
    flow.check_at_least_once()
    flow.check_few_repeated()


def run(side: Side, directory: Path) -> Outcomes:
    """Play the scenario on one broker."""
    name = "the engine resumes from its offsets over kills of the broker and the engine"
    with one_broker(side, directory / "broker", SMALL, kraft=True) as broker:
        return scenarios.play({name: functools.partial(_lines, broker)}, directory)


SUITE = Suite(
    name="Debezium",
    version=DEBEZIUM_VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/debezium/debezium",
    tests="scenarios",
)
