"""Suggestions for misspelled commands, flags and settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_compat.tools.registry import TOOLS
from tests.support.servers import PROJECT, StartBroker, run_kafka_compat


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sreve", "unknown command sreve (did you mean serve?)"),
        ("topcis --list", "unknown command topcis (did you mean topics?)"),
        ("quux", "unknown command quux; kafka-compat --help lists all commands"),
        ("pipeline archve", "(did you mean archive?)"),
        ("serve --overide=num.partitions=3", "--overide=num.partitions=3 (did you mean --override?)"),
        ("serve --quux", "unrecognized arguments: --quux"),
        ("health --timout 3", "(did you mean --timeout?)"),
    ],
)
def test_misspelled_commands_and_flags_get_a_suggestion(line: str, told: str) -> None:
    ran = run_kafka_compat(*line.split())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1].endswith(told) or told in ran.stderr.splitlines()[-1]
    assert ran.stderr.count("did you mean") == told.count("did you mean")


def test_the_help_lists_kafkas_own_commands() -> None:
    told = " ".join(run_kafka_compat("--help").stdout.split())
    assert all(command in told for command in TOOLS) and "kafka-compat topics" in told


def test_the_help_for_processes_says_which_http_ports_are_used() -> None:
    told = " ".join(run_kafka_compat("serve", "--help").stdout.split())
    assert "HTTP ports are consecutive, starting at the port of that listener" in told


def test_misspelled_settings_from_any_source_get_a_suggestion(tmp_path: Path) -> None:
    """In a file, the environment or on the command line, a misspelled setting causes only a warning."""
    file = tmp_path / "server.properties"
    file.write_text("num.partitons=3\n")
    command = [sys.executable, "-m", "kafka_compat", "serve", str(file), "--env", "--port=0", "--ephemeral"]
    child = subprocess.Popen(
        [*command, "--stop-at-eof", "--override=auto.create.topic.enable=false"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "KAFKA_LOG_RETENTION_HOUR": "5"},
    )
    assert child.stdout is not None
    assert child.stdout.readline().startswith("Broker 1 ready")
    _, errors = child.communicate("", timeout=20)
    for name, meant in (
        ("num.partitons", "num.partitions"),
        ("log.retention.hour", "log.retention.hours"),
        ("auto.create.topic.enable", "auto.create.topics.enable"),
    ):
        assert f"{name} (did you mean {meant}?)" in errors


def test_setting_names_unlike_any_known_name_do_not_get_a_suggestion(start_broker: StartBroker) -> None:
    broker = start_broker({"quux": "1"})
    [line] = [line for line in broker.log.read_text().splitlines() if "unknown settings" in line]
    assert line.endswith("Ignored unknown settings: quux")
