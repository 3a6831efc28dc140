"""librdkafka: its quick tests that need brokers, against three brokers as in its own workflow."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
        _run(["./configure"], sources)
        _run(["make", "-j2", "libs"], sources)
        _run(["make", "-j2", "-C", "tests", "build"], sources)
    return sources / "tests"


def _run(command: Sequence[str], directory: Path) -> None:
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if run.returncode != 0:
        raise SuiteBroken(f"{' '.join(command)}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


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
        with open(directory / "tests.log", "wb") as output:
            subprocess.run(
                ["./test-runner", *_ARGUMENTS],
                cwd=tests,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_TIMEOUT_S,
            )
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
