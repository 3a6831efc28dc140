"""Commands whose brokers are unreachable, whose streams are closed, and whose records are rejected end as
Kafka's commands do.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kafka_compat.testing import KafkaBroker
from tests.support.ports import free_port
from tests.support.servers import PROJECT, run_kafka_compat

_SLACK_S = 20
"""Time for a busy machine to start and end a command. Without the limit, it would run for 60 s or more."""


@pytest.fixture(params=["refused", "silent"])
def dead(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address at which nothing listens, or at which a server accepts connections and never responds."""
    if request.param == "refused":
        yield f"127.0.0.1:{free_port()}"
        return
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker


def timed(*arguments: str, stdin: str = "") -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a command, and return its result and its duration in seconds."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "kafka_compat", *arguments]
    ran = subprocess.run(command, cwd=PROJECT, input=stdin, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in ran.stderr
    return ran, time.monotonic() - began_s


@pytest.mark.parametrize("group", [(), ("--group", "g"), ("--partition", "0")])
def test_console_consumer_ends_after_its_timeout(dead: str, group: tuple[str, ...]) -> None:
    options = ("--topic", "t", *group, "--timeout-ms", "1000")
    ran, took_s = timed("console-consumer", "--bootstrap-server", dead, *options)
    assert ran.returncode == 0
    assert "Processed a total of 0 messages" in ran.stderr
    assert 1 <= took_s < 1 + _SLACK_S


def test_consumer_perf_test_ends_after_its_timeout(dead: str) -> None:
    options = ("--topic", "t", "--num-records", "1", "--timeout", "1000")
    ran, took_s = timed("consumer-perf-test", "--bootstrap-server", dead, *options)
    assert ran.returncode == 0
    assert "no more records within --timeout (1000 ms)" in ran.stdout
    assert took_s < 1 + _SLACK_S


def test_console_producer_fails_after_max_block_ms(dead: str) -> None:
    options = ("--topic", "t", "--producer-property", "max.block.ms=1000", "--max-block-ms", "1000")
    ran, took_s = timed("console-producer", "--bootstrap-server", dead, *options, stdin="a\n")
    assert "Topic t not present in metadata after 1000 ms." in ran.stderr
    assert "node assignment" not in ran.stderr
    assert took_s < 1 + _SLACK_S


@pytest.mark.parametrize("command", ["consumer-groups", "share-groups"])
def test_commands_for_groups_name_the_unreachable_broker(dead: str, command: str) -> None:
    ran, took_s = timed(command, "--bootstrap-server", dead, "--list", "--timeout", "1000")
    reason = rf"No broker could be reached: {dead} \((Connection refused|no response)\)"
    assert re.search(reason, ran.stdout + ran.stderr)
    assert took_s < 1 + _SLACK_S


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_not_errors(broker: KafkaBroker, stream: str) -> None:
    for command in ("console-producer --topic t", "topics --list", "status"):
        line = f"{sys.executable} -m kafka_compat {command} --bootstrap-server {broker.bootstrap_servers}"
        ran = subprocess.run(
            ["/bin/sh", "-c", f"{line} {stream}"],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in ran.stderr and "Traceback" not in ran.stdout
        assert ran.returncode == 0, command


def test_an_unknown_topic_setting_is_reported_without_the_warning_about_periods(broker: KafkaBroker) -> None:
    create = ("topics", "--bootstrap-server", broker.bootstrap_servers, "--create", "--topic", "a.b")
    ran = run_kafka_compat(*create, "--config", "nonsense.key=1")
    assert ran.returncode == 1
    assert "WARNING" not in ran.stdout and "nonsense.key" in ran.stdout
    ran = run_kafka_compat(*create)
    assert "WARNING" in ran.stdout and "Created topic a.b." in ran.stdout


def test_producer_perf_test_reports_each_rejected_record(broker: KafkaBroker) -> None:
    broker.create_topic("compacted", config={"cleanup.policy": "compact"})
    options = ("--topic", "compacted", "--num-records", "5", "--record-size", "10", "--throughput", "-1")
    perf_test = ("producer-perf-test", "--bootstrap-server", broker.bootstrap_servers, *options)
    ran = run_kafka_compat(*perf_test)
    assert ran.stderr.count("InvalidRecordException") == 5
    assert ran.stdout.startswith("0 records sent, ") and ", NaN ms avg latency, 0.00 ms max" in ran.stdout
    ran = run_kafka_compat(*perf_test, "--json")
    assert json.loads(ran.stdout)["latency_ms_avg"] is None
