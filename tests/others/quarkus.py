"""Quarkus: exactly-once processing with KafkaTransactions, while broker and application are killed."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tests.others import commands, scenarios
from tests.others.flow import Flow
from tests.others.program import Program
from tests.others.suite import Outcomes, Side, Suite
from tests.support import java, kafka_jars
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import Server

VERSION = "3.33.2"
_PROJECT = Path(__file__).with_name("programs") / "quarkus"


def _application() -> Path:
    """Return the jar of the application, which Maven builds in the cache directory on first use."""
    files = sorted(file for file in _PROJECT.rglob("*") if file.is_file())
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    built = kafka_jars.cache_directory() / f"quarkus-copies-{digest}"
    if not built.is_dir():
        partial = built.with_name(f"{built.name}.{os.getpid()}.part")
        shutil.copytree(_PROJECT, partial)
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(partial / "pom.xml"), "package"]
        try:
            commands.done(command)
            partial.rename(built)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return built / "target" / "quarkus-app" / "quarkus-run.jar"


def _copies(broker: Server, directory: Path) -> None:
    """Each record is copied once, since a transaction contains the copies and the offsets."""
    jar = _application()
    flow = Flow(broker, "quarkus")
    flow.create_topics()
    settings = {
        "kafka.bootstrap.servers": broker.address,
        "mp.messaging.incoming.lines.topic": flow.lines,
        "mp.messaging.incoming.lines.group.id": flow.lines,
        "mp.messaging.outgoing.counts.topic": flow.counts,
        "mp.messaging.outgoing.counts.transactional.id": flow.counts,
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    line = ["java", "-Xmx256M", *java.QUICK_START, *options, "-jar", str(jar)]
    flow.with_kills(lambda: Program(directory / "application.log", line))
    flow.check_once()


def run(side: Side, directory: Path) -> Outcomes:
    """Play the scenario on one broker."""
    _application()
    name = "KafkaTransactions copies each record once when the broker and the application are killed"
    return scenarios.play_on_one_broker({name: _copies}, side, directory)


SUITE = Suite(
    name="Quarkus",
    version=VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/quarkusio/quarkus",
    tests="scenarios",
)
