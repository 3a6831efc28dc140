"""The programs of Kafka's own system tests: two tests of Kafka Streams whose drivers verify each record, and
the verifiable producer and consumer. Processors are stopped, killed and replaced while they work, as in the
scripts of these tests.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.others import scenarios
from tests.others.program import WAIT_S, Program
from tests.others.servers import three_brokers
from tests.others.suite import Outcomes, Side, Suite
from tests.support import java, kafka_jars

VERSION = "3.9.1"
_PARTITIONS = 5
_SMOKE_TOPICS = (
    *("echo", "data", "min", "min-suppressed", "min-raw", "max", "sum", "sws-raw", "sws-suppressed"),
    *("dif", "cnt", "avg", "wcnt", "tagg"),
)
_EOS_TOPICS = ("data", "echo", "min", "sum", "repartition", "max", "cnt")
_RUNNING, _PROCESSED = "REBALANCING -> RUNNING", "processed"
_MESSAGES = 20_000


@dataclass
class _Streams:
    """One of Kafka's two Streams tests: a driver that writes and checks records, and several processors."""

    test_class: str
    addresses: str
    directory: Path
    settings: Mapping[str, str]
    _programs: list[Program] = field(default_factory=list)

    def start(self, command: str, number: int = 0) -> Program:
        """Start the program with a command. `number` identifies the processor, which keeps its state."""
        settings = {
            "bootstrap.servers": self.addresses,
            "state.dir": str(self.directory / f"state-{number}"),
            **self.settings,
        }
        file = self.directory / f"{number}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        log = self.directory / f"{len(self._programs)}-{command}.log"
        class_path = f"{kafka_jars.streams_tests(VERSION)}/*"
        name = f"org.apache.kafka.streams.tests.{self.test_class}"
        line = ["java", "-Xmx512M", *java.QUICK_START, "-cp", class_path, name, str(file), command]
        program = Program(log, line)
        self._programs.append(program)
        return program

    def close(self) -> None:
        """Kill whatever is left."""
        for program in self._programs:
            program.kill()


@contextmanager
def _streams(
    test_class: str, addresses: str, directory: Path, settings: Mapping[str, str]
) -> Iterator[_Streams]:
    directory.mkdir(parents=True)
    test = _Streams(test_class, addresses, directory, settings)
    try:
        yield test
    finally:
        test.close()


def _smoke(addresses: str, directory: Path, guarantee: str) -> None:
    """Replace two killed processors while the driver produces. It verifies all results in the end."""
    _create(addresses, _SMOKE_TOPICS, 1)
    settings = {"processing.guarantee": guarantee, "num.stream.threads": "3"}
    with _streams("StreamsSmokeTest", addresses, directory, settings) as test:
        first = test.start("process", 1)
        first.await_output(_RUNNING)
        driver = test.start("run")
        first.await_output(_PROCESSED)
        first.kill()
        for number in (2, 3):
            processor = test.start("process", number)
            processor.await_output(_RUNNING, _PROCESSED)
            if number == 2:
                processor.kill()
        output = driver.end()
        assert "ALL-RECORDS-DELIVERED" in output, output[-2000:]
        if guarantee == "at_least_once":
            assert "SUCCESS" in output or "PROCESSED-MORE-THAN-GENERATED" in output, output[-2000:]
        else:
            assert "SUCCESS" in output, output[-2000:]


def _exactly_once(addresses: str, directory: Path, *, kill: bool, kind: str = "") -> None:
    """Stop or kill processors in turn, and start them again. Verify the results in the end."""
    _create(addresses, _EOS_TOPICS, 2)
    settings = {
        "processing.guarantee": "exactly_once_v2",
        "acceptable.recovery.lag": "9223372036854775807",
        "session.timeout.ms": "10000",
    }
    with _streams("StreamsEosTest", addresses, directory, settings) as test:
        driver = test.start("run")
        running: dict[int, Program] = {}
        for number in (1, 2, 3):
            _join(test, running, number, f"process{kind}")
        for number in (3, 1, 2):
            left = running.pop(number)
            for other in running.values():
                other.skip_output()
            if kill:
                left.kill()
            else:
                left.stop()
            for other in running.values():
                other.await_output(_RUNNING, _PROCESSED)
            _join(test, running, number, f"process{kind}")
        for processor in running.values():
            processor.stop()
        driver.stop()
        output = test.start(f"verify{kind}").end()
        assert "ALL-RECORDS-DELIVERED" in output, output[-2000:]


def _join(test: _Streams, running: dict[int, Program], number: int, command: str) -> None:
    """Start a processor, and wait until it and the others process records."""
    for other in running.values():
        other.skip_output()
    running[number] = test.start(command, number)
    for processor in running.values():
        processor.await_output(_RUNNING, _PROCESSED)


def _verifiable(addresses: str, directory: Path) -> None:
    """The verifiable consumer receives each record that the verifiable producer reports as acknowledged."""
    directory.mkdir(parents=True)
    _create(addresses, ("verifiable",), 3)
    where = ("--bootstrap-server", addresses, "--topic", "verifiable", "--max-messages", str(_MESSAGES))
    sent = java.run("kafka-verifiable-producer", *where, version=VERSION, timeout_s=WAIT_S).stdout
    (directory / "producer.log").write_text(sent)
    received = java.run(
        "kafka-verifiable-consumer", *where, "--group-id", "verifiable", version=VERSION, timeout_s=WAIT_S
    ).stdout
    (directory / "consumer.log").write_text(received)
    acknowledged = sum(event["name"] == "producer_send_success" for event in _events(sent))
    consumed = sum(event["count"] for event in _events(received) if event["name"] == "records_consumed")
    assert (acknowledged, consumed) == (_MESSAGES, _MESSAGES)


def _events(output: str) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line) for line in output.splitlines() if line.startswith("{"))


def _create(addresses: str, topics: tuple[str, ...], replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": addresses})
    for created in admin.create_topics([NewTopic(name, _PARTITIONS, replicas) for name in topics]).values():
        created.result(60)


_SCENARIOS: Mapping[str, Callable[[str, Path], None]] = {
    "StreamsSmokeTest, at_least_once": functools.partial(_smoke, guarantee="at_least_once"),
    "StreamsSmokeTest, exactly_once_v2": functools.partial(_smoke, guarantee="exactly_once_v2"),
    "StreamsEosTest, rebalance": functools.partial(_exactly_once, kill=False),
    "StreamsEosTest, failure and recovery": functools.partial(_exactly_once, kill=True),
    "StreamsEosTest, failure and recovery, complex": functools.partial(
        _exactly_once, kill=True, kind="-complex"
    ),
    "VerifiableProducer and VerifiableConsumer": _verifiable,
}


def run(side: Side, directory: Path) -> Outcomes:
    """Play each scenario on new servers."""

    def on_new_servers(scenario: Callable[[str, Path], None], folder: Path) -> None:
        with three_brokers(side, folder / "servers") as addresses:
            scenario(addresses, folder / "programs")

    return scenarios.play(
        {name: functools.partial(on_new_servers, scenario) for name, scenario in _SCENARIOS.items()},
        directory,
    )


SUITE = Suite(
    name="Kafka's system test programs",
    version=VERSION,
    source="Maven Central",
    servers=f"Kafka {VERSION}, three brokers",
    run=run,
    link="https://github.com/apache/kafka/tree/trunk/tests",
    tests="scenarios",
)
