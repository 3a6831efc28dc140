"""Quarkus: exactly-once processing with KafkaTransactions, over kills of the broker and the application."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.others import scenarios
from tests.others.flow import Flow
from tests.others.program import Program
from tests.others.servers import SMALL, one_broker
from tests.others.suite import Outcomes, Side, Suite, SuiteBroken
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
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            shutil.rmtree(partial)
            raise SuiteBroken(run.stdout[-3000:])
        partial.rename(built)
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
    flow.over_kills(lambda: Program(directory / "application.log", line))
    flow.check_once()


def run(side: Side, directory: Path) -> Outcomes:
    """Play the scenario on one broker."""
    _application()
    name = "KafkaTransactions copies each record once over kills of the broker and the application"
    with one_broker(side, directory / "broker", SMALL, kraft=True) as broker:
        return scenarios.play({name: functools.partial(_copies, broker)}, directory)


SUITE = Suite(
    name="Quarkus",
    version=VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/quarkusio/quarkus",
    tests="scenarios",
)
