"""Spring Kafka: listeners of each kind, over kills of the broker and the application."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.others import scenarios
from tests.others.flow import RECORDS, Flow, read
from tests.others.program import Program
from tests.others.servers import SMALL, one_broker
from tests.others.suite import Outcomes, Side, Suite
from tests.support import java, kafka_jars
from tests.support.kafka_jars import NEWEST_VERSION, SPRING_VERSION
from tests.support.servers import Server

_SOURCE = Path(__file__).with_name("programs") / "SpringListeners.java"
_SETTINGS = {
    **SMALL,
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}


def _started(flow: Flow, directory: Path, kind: str) -> Program:
    line = [
        "java",
        "-Xmx256M",
        *java.QUICK_START,
        java.log_option(),
        "-cp",
        f"{kafka_jars.spring()}/*:{directory}",
    ]
    arguments = [flow.broker.address, flow.lines, flow.counts, kind]
    return Program(directory / "application.log", [*line, "SpringListeners", *arguments])


def _compile(directory: Path) -> None:
    line = [*java.QUICK_COMPILER, "-cp", f"{kafka_jars.spring()}/*", "-d", str(directory), str(_SOURCE)]
    subprocess.run(line, check=True)


def _copies(broker: Server, directory: Path, *, kind: str) -> None:
    _compile(directory)
    flow = Flow(broker, kind)
    flow.create_topics()
    if kind == "share":
        _read_from_the_start(broker.address, f"{flow.lines}-share")
    flow.over_kills(lambda: _started(flow, directory, kind))
    if kind == "transactional":
        flow.check_once()
    else:
        flow.check_at_least_once()


def _read_from_the_start(address: str, group: str) -> None:
    change = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    admin.incremental_alter_configs([resource])[resource].result(60)


def _retries(broker: Server, directory: Path) -> None:
    """Each number that ends with 7 reaches the dead letter topic, and no other number does."""
    _compile(directory)
    flow = Flow(broker, "retry")
    flow.create_topics()
    flow.over_kills(lambda: _started(flow, directory, "retry"), kill_program=False)
    flow.check_at_least_once()
    dead = {value.partition(":")[0] for _, value in read(broker.address, flow.counts) if value.endswith(":1")}
    assert dead == {str(number) for number in range(RECORDS) if number % 10 == 7}


def _replies(broker: Server, directory: Path) -> None:
    """Each request gets its own reply."""
    _compile(directory)
    flow = Flow(broker, "reply")
    flow.create_topics()
    output = _started(flow, directory, "reply").end()
    assert "all replies" in output, output[-2000:]


_SCENARIOS: Mapping[str, Callable[[Server, Path], None]] = {
    "a transactional listener copies each record once over kills": functools.partial(
        _copies, kind="transactional"
    ),
    "a batch listener loses no record over kills": functools.partial(_copies, kind="batch"),
    "a share listener loses no record over kills": functools.partial(_copies, kind="share"),
    "failed records reach the dead letter topic through retry topics, over a kill of the broker": _retries,
    "each request gets its reply": _replies,
}


def run(side: Side, directory: Path) -> Outcomes:
    """Play each scenario on one broker."""
    with one_broker(side, directory / "broker", _SETTINGS, kraft=True) as broker:
        bound = {name: functools.partial(scenario, broker) for name, scenario in _SCENARIOS.items()}
        return scenarios.play(bound, directory)


SUITE = Suite(
    name="Spring Kafka",
    version=SPRING_VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/spring-projects/spring-kafka",
    tests="scenarios",
)
