"""Apache Flink's exactly-once sink, with both ways to name transactions, over a kill of the broker."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from tests.others import scenarios
from tests.others.flow import Flow
from tests.others.program import Program
from tests.others.servers import SMALL, one_broker
from tests.others.suite import Outcomes, Side, Suite
from tests.support import java, kafka_jars
from tests.support.kafka_jars import FLINK_VERSION, NEWEST_VERSION
from tests.support.servers import Server

_SOURCE = Path(__file__).with_name("programs") / "FlinkCopies.java"
_OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "time")]
"""Packages that Flink's serializers read by reflection."""


def _copies(broker: Server, directory: Path, *, naming: str) -> None:
    """Each record is copied once although the job fails once and the broker is killed."""
    jars = f"{kafka_jars.flink()}/*"
    subprocess.run([*java.QUICK_COMPILER, "-cp", jars, "-d", str(directory), str(_SOURCE)], check=True)
    flow = Flow(broker, f"flink-{naming.lower()}")
    flow.create_topics()
    line = [
        "java",
        "-Xmx768M",
        *java.QUICK_START,
        java.log_option(),
        *_OPENED,
        "-cp",
        f"{jars}:{directory}",
        "FlinkCopies",
    ]
    arguments = [broker.address, flow.lines, flow.counts, naming]
    flow.over_kills(lambda: Program(directory / "job.log", [*line, *arguments]), kill_program=False)
    flow.check_once()


def run(side: Side, directory: Path) -> Outcomes:
    """Play both scenarios on one broker."""
    with one_broker(side, directory / "broker", SMALL, kraft=True) as broker:
        found = {
            f"the exactly-once sink writes each record once, {naming}": functools.partial(
                _copies, broker, naming=naming
            )
            for naming in ("INCREMENTING", "POOLING")
        }
        return scenarios.play(found, directory)


SUITE = Suite(
    name="Apache Flink",
    version=FLINK_VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/apache/flink-connector-kafka",
    tests="scenarios",
)
