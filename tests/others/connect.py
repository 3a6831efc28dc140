"""Kafka Connect with an exactly-once source, and MirrorMaker 2 in both directions, with kills."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.others import mirror, scenarios
from tests.others.connect_worker import ConnectWorker
from tests.others.flow import read
from tests.others.program import WAIT_S
from tests.others.servers import kill_and_start
from tests.others.suite import Outcomes, Side, Suite
from tests.support.process import wait_until
from tests.support.servers import Server

_KAFKA = "3.9.1"
_LINES = 900
_EXACTLY_ONCE = {"exactly.once.support": "required", "transaction.boundary": "poll"}


def _source(file: Path, topic: str) -> dict[str, str]:
    """Return the settings of a connector that writes the lines of a file to a topic."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(file),
        "topic": topic,
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        **_EXACTLY_ONCE,
    }


def _sink(file: Path, topic: str) -> dict[str, str]:
    """Return the settings of a connector that writes a topic to a file."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "1",
        "file": str(file),
        "topics": topic,
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.auto.offset.reset": "earliest",
    }


def _append(file: Path, numbers: Sequence[int]) -> None:
    with file.open("a") as output:
        output.write("".join(f"line {number}\n" for number in numbers))


def _await_lines(address: str, topic: str, count: int) -> None:
    def enough() -> bool:
        names = AdminClient({"bootstrap.servers": address, "log_level": 2}).list_topics(timeout=60).topics
        return topic in names and len(read(address, topic, 1)) >= count

    wait_until(enough, WAIT_S, f"{count} lines in {topic}", 1.0)


def _exactly_once(broker: Server, directory: Path, *, version: str) -> None:
    """A file goes through a topic to another file, while the broker and the worker are killed."""
    lines, copies, topic = directory / "lines.txt", directory / "copies.txt", f"lines-{version}"
    worker = ConnectWorker(directory, version, broker.address, f"connect-{version}")
    _append(lines, range(_LINES // 3))
    try:
        worker.start()
        worker.configure("source", _source(lines, topic))
        worker.configure("sink", _sink(copies, topic))
        _await_lines(broker.address, topic, _LINES // 6)
        _append(lines, range(_LINES // 3, _LINES * 2 // 3))
        kill_and_start(broker)
        _await_lines(broker.address, topic, _LINES // 2)
        worker.kill()
        _append(lines, range(_LINES * 2 // 3, _LINES))
        worker.start()
        _await_lines(broker.address, topic, _LINES)
        expected = [f"line {number}" for number in range(_LINES)]
        wait_until(
            lambda: set(copies.read_text().splitlines()) == set(expected), WAIT_S, "all lines in the copy", 1
        )
        assert [value for _, value in read(broker.address, topic, 1)] == expected
        _check_internal_topics(broker.address, f"connect-{version}")
    finally:
        worker.kill()


def _check_internal_topics(address: str, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    topics = admin.list_topics(timeout=60).topics
    found = {kind: len(topics[f"{group}-{kind}"].partitions) for kind in ("config", "offset", "status")}
    assert found == {"config": 1, "offset": 25, "status": 5}
    resources = [ConfigResource(ResourceType.TOPIC, f"{group}-{kind}") for kind in found]
    for described in admin.describe_configs(resources).values():
        assert described.result(60)["cleanup.policy"].value == "compact"


def _offsets(broker: Server, directory: Path, *, version: str) -> None:
    """The offsets of a stopped source are read and reset, and it starts again from the beginning."""
    lines, topic, group = directory / "lines.txt", f"twice-{version}", f"offsets-{version}"
    worker = ConnectWorker(directory, version, broker.address, group)
    _append(lines, range(100))
    try:
        worker.start()
        worker.configure("twice", _source(lines, topic))
        _await_lines(broker.address, topic, 100)
        worker.stop("twice")
        wait_until(lambda: worker.offsets("twice") != [], WAIT_S, "offsets of the source", 1.0)
        (offset,) = worker.offsets("twice")
        assert offset == {
            "partition": {"filename": str(lines)},
            "offset": {"position": lines.stat().st_size},
        }
        worker.reset_offsets("twice")
        assert worker.offsets("twice") == []
        worker.resume("twice")
        _await_lines(broker.address, topic, 200)
        assert len(read(broker.address, topic, 1)) == 200
        worker.delete("twice")
        wait_until(lambda: worker.connectors() == [], WAIT_S, "deletion of the source", 1.0)
    finally:
        worker.kill()


def _suite(version: str) -> Suite:
    found: Mapping[str, scenarios.BrokerScenario] = {
        "an exactly-once source writes each line once when the broker and the worker are killed": _bound(
            _exactly_once, version
        ),
        "offsets of a stopped source are read and reset": _bound(_offsets, version),
        "MirrorMaker 2 copies each record once from Apache Kafka, while the target is killed": _bound(
            mirror.to_broker, version
        ),
        "MirrorMaker 2 copies each record once to Apache Kafka, while the source is killed": _bound(
            mirror.from_broker, version
        ),
    }

    def run(side: Side, directory: Path) -> Outcomes:
        return scenarios.play_on_one_broker(found, side, directory, kraft=False)

    return Suite(
        name=f"Kafka Connect and MirrorMaker 2, {version}",
        version=version,
        source="Maven Central",
        servers=f"Kafka {_KAFKA}, one broker; Kafka 4.4.0 as the other cluster of MirrorMaker 2",
        run=run,
        link="https://kafka.apache.org/documentation/#connect",
        tests="scenarios",
    )


def _bound(scenario: Callable[..., None], version: str) -> scenarios.BrokerScenario:
    return functools.partial(scenario, version=version)


SUITES: Sequence[Suite] = (_suite("3.9.1"), _suite("4.3.1"))
