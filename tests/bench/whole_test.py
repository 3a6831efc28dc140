"""A whole test: start a broker, create a topic, produce ten records, consume them with a group, and stop the
broker.

`python -m tests.bench.whole_test CLIENT` is the client. It imports its library, prints `ready`, reads the
address of a broker from standard input, and prints the seconds that each step took as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.sides import Side
from tests.support.servers import PROJECT, KafkaCompatBroker

_RECORDS = 10
_TOPIC = "flights"
_GROUP = "readers"
_TIMEOUT_S = 60.0

STEPS = {
    "whole_s": "whole test",
    "startup_s": "startup",
    "create_s": "create topic",
    "produce_s": "produce",
    "consume_s": "consume",
    "shutdown_s": "shutdown",
}
"""Column titles by metric."""


class _Steps:
    """The seconds that each step of a client took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, metric: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[metric] = time.perf_counter() - began


def confluent() -> Callable[[str], dict[str, float]]:
    """Import confluent-kafka, and return its test. All clients have default settings."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    def test(address: str) -> dict[str, float]:
        steps = _Steps()
        at: dict[str, str | int | float | bool] = {"bootstrap.servers": address}
        with steps.step("create_s"):
            admin = AdminClient(at)
            admin.create_topics([NewTopic(_TOPIC, 1, 1)])[_TOPIC].result(_TIMEOUT_S)
        with steps.step("produce_s"):
            producer = Producer(at)
            for number in range(_RECORDS):
                producer.produce(_TOPIC, b"%d" % number)
            _check(producer.flush(_TIMEOUT_S) == 0)
        with steps.step("consume_s"):
            consumer = Consumer({**at, "group.id": _GROUP, "auto.offset.reset": "earliest"})
            consumer.subscribe([_TOPIC])
            for number in range(_RECORDS):
                message: Any = consumer.poll(_TIMEOUT_S)
                _check(message is not None and message.error() is None and message.value() == b"%d" % number)
            consumer.close()
        return steps.seconds

    return test


def kafka_python() -> Callable[[str], dict[str, float]]:
    """Import kafka-python, and return its test. All clients have default settings."""
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

    def test(address: str) -> dict[str, float]:
        steps = _Steps()
        with steps.step("create_s"):
            admin = KafkaAdminClient(bootstrap_servers=address)
            admin.create_topics([NewTopic(_TOPIC, 1, 1)])
            admin.close()
        with steps.step("produce_s"):
            producer = KafkaProducer(bootstrap_servers=address)
            for number in range(_RECORDS):
                producer.send(_TOPIC, b"%d" % number)
            producer.flush(_TIMEOUT_S)
            producer.close()
        with steps.step("consume_s"):
            consumer = KafkaConsumer(
                _TOPIC, bootstrap_servers=address, group_id=_GROUP, auto_offset_reset="earliest"
            )
            for number in range(_RECORDS):
                _check(next(consumer).value == b"%d" % number)
            consumer.close()
        return steps.seconds

    return test


CLIENTS: dict[str, Callable[[], Callable[[str], dict[str, float]]]] = {
    "whole-test-confluent": confluent,
    "whole-test-kafka-python": kafka_python,
}
"""The clients by their names for --only. Each imports its library and returns its test, which takes a
broker's address.
"""


def measure(side: Side, client: str) -> dict[str, float]:
    """Run one test with a side of one broker that is not running, and return the seconds of each step.

    The time starts with the broker's process and ends when that process has exited. The import of the
    client's library and the preparation of Apache Kafka's data directory are excluded. This broker runs with
    --ephemeral. Raises RuntimeError if the client fails.
    """
    (server,) = side.servers
    if isinstance(server, KafkaCompatBroker):
        # Start it as test suites do, with temporary data.
        del server.overrides["log.dirs"]
        server.arguments.append("--ephemeral")
    server.prepare()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.whole_test", client],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdout.readline()
            began = time.perf_counter()
            server.launch()
            server.wait_ready(_TIMEOUT_S)
            served = time.perf_counter()
            child.stdin.write(f"{side.address}\n")
            child.stdin.flush()
            line = child.stdout.readline()
            finished = time.perf_counter()
            _terminate(server.pid)
            ended = time.perf_counter()
        finally:
            child.kill()
    if not line:
        raise RuntimeError(f"{client} failed with {side.label}:\n{server.process.tail()}")
    of_the_client: dict[str, float] = json.loads(line)
    return {
        "startup_s": served - began,
        **of_the_client,
        "shutdown_s": ended - finished,
        "whole_s": ended - began,
    }


def _terminate(pid: int) -> None:
    """Send SIGTERM, and wait until the process has exited. Unlike Popen.wait with a timeout, this does not
    poll, which would add up to 50 ms.
    """
    process = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGTERM)
        select.select([process], [], [], _TIMEOUT_S)
    finally:
        os.close(process)


def _check(is_right: bool) -> None:
    if not is_right:
        raise RuntimeError("the client did not produce or consume its records")


if __name__ == "__main__":
    test = CLIENTS[sys.argv[1]]()
    print("ready", flush=True)
    print(json.dumps(test(sys.stdin.readline().strip())), flush=True)
    # Wait to be killed, because the end of this process would take CPU time from the broker's shutdown.
    sys.stdin.read()
