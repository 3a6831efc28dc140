"""Java consumers with group.protocol=consumer (KIP-848) get the same results as on Apache Kafka 4.4."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import java_command
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka, KafkaCompatBroker

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")

SOURCES = ("consumer_protocol", "common/Json.java")
SCENARIOS = [
    "names",
    "pattern",
    "static members",
    "transactions",
    "assignors",
    "poll interval",
    "both protocols",
    "admin",
]
MAX_LOG_BYTES = 100_000
"""Maximum size of a client's log. A client that repeats requests without a pause logs megabytes."""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    ours = KafkaCompatBroker(tmp_path_factory.mktemp("ours"))
    genuine = GenuineKafka(tmp_path_factory.mktemp("genuine"), version=NEWEST_VERSION, mode="kraft")
    for server in (ours, genuine):
        server.start(180)
    yield [ours.address, genuine.address]
    ours.stop()
    genuine.stop()


def observed(program: list[str], address: str, log: Path) -> dict[str, Any]:
    """Run all scenarios, and return what each one observed."""
    line = [*program, address, log.parent.name]
    with log.open("wb") as errors:
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=errors, timeout=600)
    assert done.returncode == 0, log.read_text()[-4000:]
    found: dict[str, Any] = {}
    for text in done.stdout.decode().splitlines():
        if text.startswith("{"):
            found |= json.loads(text)
    return found


@pytest.mark.parametrize("version", ["4.1.0", "4.3.1", NEWEST_VERSION])
def test_java_consumers_get_the_same_results_as_on_apache_kafka(
    addresses: list[str], version: str, tmp_path: Path
) -> None:
    logs = [tmp_path / "ours.log", tmp_path / "genuine.log"]
    program = java_command("ConsumerProtocol", version, SOURCES)
    with ThreadPoolExecutor(2) as both:
        ours, genuine = both.map(observed, [program] * 2, addresses, logs)
    assert list(ours) == SCENARIOS
    assert ours == genuine
    assert logs[0].stat().st_size < MAX_LOG_BYTES
