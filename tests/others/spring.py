"""Spring Kafka: each kind of listener, while the broker and the application are killed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.others import java_programs, scenarios
from tests.others.flow import RECORDS, Flow, read
from tests.others.program import Program
from tests.others.servers import SMALL
from tests.others.suite import Outcomes, Side, Suite
from tests.support import kafka_jars
from tests.support.kafka_jars import NEWEST_VERSION, SPRING_VERSION
from tests.support.servers import Server

_SETTINGS = {
    **SMALL,
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}


_PROGRAM = "SpringListeners"


def _compiled(directory: Path) -> str:
    return java_programs.compiled(_PROGRAM, kafka_jars.spring(), directory)


def _started(flow: Flow, class_path: str, directory: Path, kind: str) -> Program:
    arguments = (flow.broker.address, flow.lines, flow.counts, kind)
    return java_programs.started(_PROGRAM, class_path, directory / "application.log", *arguments)


def _copies(broker: Server, directory: Path, *, kind: str) -> None:
    class_path = _compiled(directory)
    flow = Flow(broker, kind)
    flow.create_topics()
    if kind == "share":
        _read_from_the_start(broker.address, f"{flow.lines}-share")
    flow.with_kills(lambda: _started(flow, class_path, directory, kind))
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
    class_path = _compiled(directory)
    flow = Flow(broker, "retry")
    flow.create_topics()
    flow.with_kills(lambda: _started(flow, class_path, directory, "retry"), kill_program=False)
    flow.check_at_least_once()
    dead = {value.partition(":")[0] for _, value in read(broker.address, flow.counts) if value.endswith(":1")}
    assert dead == {str(number) for number in range(RECORDS) if number % 10 == 7}


def _replies(broker: Server, directory: Path) -> None:
    """Each request gets its own reply."""
    class_path = _compiled(directory)
    flow = Flow(broker, "reply")
    flow.create_topics()
    output = _started(flow, class_path, directory, "reply").end()
    assert "all replies" in output, output[-2000:]


_SCENARIOS: Mapping[str, scenarios.BrokerScenario] = {
    "a transactional listener copies each record once in spite of kills": functools.partial(
        _copies, kind="transactional"
    ),
    "a batch listener loses no record in spite of kills": functools.partial(_copies, kind="batch"),
    "a share listener loses no record in spite of kills": functools.partial(_copies, kind="share"),
    "failed records reach the dead letter topic through retry topics, when the broker is killed": _retries,
    "each request gets its reply": _replies,
}


def run(side: Side, directory: Path) -> Outcomes:
    """Play each scenario on one broker."""
    return scenarios.play_on_one_broker(_SCENARIOS, side, directory, _SETTINGS)


SUITE = Suite(
    name="Spring Kafka",
    version=SPRING_VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/spring-projects/spring-kafka",
    tests="scenarios",
)
