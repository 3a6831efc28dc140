"""Commands whose standard output is full, closed, or a pipe without a reader."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_compat.testing import KafkaBroker
from tests.support.servers import PROJECT

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
UNBUFFERED = BUFFERED | {"PYTHONUNBUFFERED": "1"}
COMMANDS = [
    "--version",
    "--help",
    "completion bash",
    "doctor @",
    "status @",
    "status @ --json",
    "status @ --watch",
    "acls @ --list",
    "broker-api-versions @",
    "client-metrics @ --list",
    "configs @ --describe --entity-type brokers",
    "console-consumer @ --topic t --from-beginning --max-messages 3 --json",
    "consumer-groups @ --describe --group g",
    "get-offsets @",
    "groups @ --list",
    "log-dirs @ --describe",
    "topics @ --list",
]


def run(broker: KafkaBroker, command: str, stream: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run a command with the stream as its standard output, and return its exit code and stderr."""
    words = command.replace("@", f"--bootstrap-server {broker.bootstrap_servers}").split()
    line = [sys.executable, "-m", "kafka_compat", *words]
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {stream}', "sh", *line],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        env=environment,
        timeout=60,
    )
    os.close(write)
    assert "Traceback" not in result.stderr and "Exception ignored" not in result.stderr
    return result.returncode, result.stderr


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as started:
        started.create_topic("t")
        producer = Producer({"bootstrap.servers": started.bootstrap_servers})
        producer.produce("t", b"1")
        producer.flush()
        member = Consumer({"bootstrap.servers": started.bootstrap_servers, "group.id": "g"})
        member.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        member.close()
        yield started


@pytest.mark.parametrize(
    ("command", "environment"),
    [*((command, BUFFERED) for command in COMMANDS), *((command, UNBUFFERED) for command in COMMANDS[-3:])],
)
def test_a_command_that_cannot_write_ends_with_one_message(
    broker: KafkaBroker, command: str, environment: dict[str, str]
) -> None:
    code, errors = run(broker, command, ">/dev/full", environment)
    if command.startswith("console-consumer"):
        # Like Kafka's command.
        assert code == 0 and errors.count("Cannot write to standard output, closing the consumer.\n") == 1
        return
    assert code == 1
    assert errors.endswith("kafka-compat: cannot write to standard output: No space left on device\n")
    assert "java" not in errors
    code, errors = run(broker, command, "", environment)
    assert code == 0 and "java" not in errors and "cannot write" not in errors
