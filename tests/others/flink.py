"""Apache Flink's exactly-once sink, with both ways to name transactions, while the broker is killed."""

from __future__ import annotations

import functools
from pathlib import Path

from tests.others import java_programs, scenarios
from tests.others.flow import Flow
from tests.others.program import Program
from tests.others.suite import Outcomes, Side, Suite
from tests.support import kafka_jars
from tests.support.kafka_jars import FLINK_VERSION, NEWEST_VERSION
from tests.support.servers import Server

_OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "time")]
"""Packages that Flink's serializers read by reflection."""


def _copies(broker: Server, directory: Path, *, naming: str) -> None:
    """Each record is copied once although the job fails once and the broker is killed."""
    class_path = java_programs.compiled("FlinkCopies", kafka_jars.flink(), directory)
    flow = Flow(broker, f"flink-{naming.lower()}")
    flow.create_topics()
    arguments = (broker.address, flow.lines, flow.counts, naming)

    def start() -> Program:
        log = directory / "job.log"
        return java_programs.started("FlinkCopies", class_path, log, *arguments, heap="768M", options=_OPENED)

    flow.with_kills(start, kill_program=False)
    flow.check_once()


def run(side: Side, directory: Path) -> Outcomes:
    """Play both scenarios on one broker."""
    found = {
        f"the exactly-once sink writes each record once, {naming}": functools.partial(_copies, naming=naming)
        for naming in ("INCREMENTING", "POOLING")
    }
    return scenarios.play_on_one_broker(found, side, directory)


SUITE = Suite(
    name="Apache Flink",
    version=FLINK_VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/apache/flink-connector-kafka",
    tests="scenarios",
)
