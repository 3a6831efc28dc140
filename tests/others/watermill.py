"""Watermill: the short tests of its publisher and subscriber for Kafka, against three brokers."""

from __future__ import annotations

import re
from pathlib import Path

from tests.others.go_modules import GoTests
from tests.others.servers import three_brokers
from tests.others.suite import Outcomes, Side, Suite

TESTS = GoTests("github.com/ThreeDotsLabs/watermill-kafka/v3", "v3.0.6", ["pkg/kafka"])
_TIMEOUT_S = 1800
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""In the names of subtests, which differ from run to run."""


def run(side: Side, directory: Path) -> Outcomes:
    """Run the tests."""
    TESTS.compile()
    with three_brokers(side, directory) as addresses:
        found = TESTS.run(
            directory / "tests.json",
            {"WATERMILL_TEST_KAFKA_BROKERS": addresses},
            timeout_s=_TIMEOUT_S,
            arguments=["-test.short"],
        )
    return {_UUID.sub("UUID", name): outcome for name, outcome in found.items()}


SUITE = Suite(
    name="Watermill",
    version=TESTS.version.removeprefix("v"),
    source="Go module",
    servers="Kafka 3.9.1, three brokers",
    run=run,
    link="https://github.com/ThreeDotsLabs/watermill-kafka",
)
