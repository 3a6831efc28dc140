"""librdkafka: its quick tests that need brokers, against three brokers as in its own workflow."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.others import commands
from tests.others.crates import CrateTests
from tests.others.servers import three_brokers
from tests.others.suite import Outcome, Outcomes, Side, Suite, SuiteBroken
from tests.support import java

CRATE = CrateTests("rdkafka-sys", "4.10.0")
"""The crate contains the sources of librdkafka, with its tests."""
VERSION = "2.12.1"
_KAFKA = "3.9.1"
_TIMEOUT_S = 3600
_SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "4",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""The settings of the suite's own clusters."""
_ARGUMENTS = ("-p3", "-K", "-L", "-Q", "-E")
"""Three tests at once. No known issues, no tests without brokers, less data, no broken sockets."""


def _tests() -> Path:
    """Return the directory of the compiled tests, which are compiled on first use."""
    CRATE.download()
    sources = CRATE.sources / "librdkafka"
    if not (sources / "tests" / "test-runner").exists():
        commands.done(["./configure"], sources)
        commands.done(["make", "-j2", "libs"], sources)
        commands.done(["make", "-j2", "-C", "tests", "build"], sources)
    return sources / "tests"


def _kafka_scripts(directory: Path) -> Path:
    """Write the scripts of Kafka's own tools that tests call. Return the directory that contains bin."""
    (directory / "bin").mkdir(parents=True)
    for tool in ("kafka-topics", "kafka-acls"):
        script = directory / "bin" / f"{tool}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(java.command(tool, version=_KAFKA))} "$@"\n')
        script.chmod(0o755)
    return directory


def outcomes(report: Mapping[str, Any]) -> Outcomes:
    """Return the outcome of each test in a report, without those that were skipped: most of them are tests
    that the arguments exclude.
    """
    found: dict[str, Outcome] = {}
    for name, test in report["tests"].items():
        if name != "<MAIN>" and test["state"] != "SKIPPED":
            found[name] = "passed" if test["state"] == "PASSED" else "failed"
    return found


def run(side: Side, directory: Path) -> Outcomes:
    """Run the tests."""
    tests = _tests()
    scripts = _kafka_scripts(directory / "kafka")
    with three_brokers(side, directory / "servers", _SETTINGS, in_racks=True) as addresses:
        config = directory / "test.conf"
        config.write_text(f"test.timeout.multiplier=2\nbootstrap.servers={addresses}\n")
        report = directory / "report.json"
        environment = {
            "RDKAFKA_TEST_CONF": str(config),
            "TEST_REPORT": str(report),
            "TEST_KAFKA_VERSION": _KAFKA,
            "TEST_SCENARIO": "default",
            "KAFKA_PATH": str(scripts),
            "BROKERS": addresses,
            "LD_LIBRARY_PATH": "../src:../src-cpp",
        }
        command = ["./test-runner", *_ARGUMENTS]
        commands.logged(command, directory / "tests.log", tests, environment, timeout_s=_TIMEOUT_S)
    if not report.exists():
        raise SuiteBroken(f"librdkafka: no report, see {directory}/tests.log")
    return outcomes(json.loads(report.read_text()))


SUITE = Suite(
    name="librdkafka",
    version=VERSION,
    source="crates.io",
    servers=f"Kafka {_KAFKA}, three brokers",
    run=run,
    link="https://github.com/confluentinc/librdkafka",
)
