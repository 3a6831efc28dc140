"""Commands for groups with the consumer protocol (KIP-848). On one broker, this project's commands print the
same output as Kafka's. Kafka's commands print the same output for this broker as for Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server
from tests.tools.compare import Comparison, lines_of, neutral_lines, table

SAME_ON_ALL_BROKERS = 20
"""Number of lines in the table that only read, or fail, so that they can run on two brokers."""
VARIABLE = {
    r"\b[\w/+-]{22}\b|[\w/+-]{20,22}==?": "MEMBER",
    r"127\.0\.0\.1:\d+": "ADDRESS",
    r" +": " ",
}


class Groups:
    """Groups on a broker: `modern` with two members, one of which is static, and `gone` without members."""

    def __init__(self, address: str) -> None:
        self._address = address
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic("alpha", 3, 1)])["alpha"].result(60)
        producer = Producer({"bootstrap.servers": address})
        for number in range(30):
            producer.produce("alpha", f"value {number}", f"key {number}", number % 3)
        assert producer.flush(60) == 0
        gone = self._member("gone", "left")
        self._wait([gone], [3])
        gone.commit(offsets=[TopicPartition("alpha", 1, 4)], asynchronous=False)
        gone.close()
        first = self._member("modern", "one")
        self._wait([first], [3])
        self._members = [first, self._member("modern", "two", **{"group.instance.id": "static"})]
        self._wait(self._members, [1, 2])
        for partition in range(2):
            first.commit(offsets=[TopicPartition("alpha", partition, 5)], asynchronous=False)

    def _member(self, group: str, client_id: str, **settings: str) -> Consumer:
        member = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": group,
                "group.protocol": "consumer",
                "client.id": client_id,
                "enable.auto.commit": False,
                "max.poll.interval.ms": 1_000_000,
                "log_level": 0,
                **settings,
            }
        )
        member.subscribe(["alpha"])
        return member

    def _wait(self, members: list[Consumer], sizes: list[int]) -> None:
        def is_assigned() -> bool:
            for member in members:
                member.poll(0.1)
            return sorted(len(member.assignment()) for member in members) == sizes

        wait_until(is_assigned, 60, f"assignments of {sizes} partitions")

    def close(self) -> None:
        self._members.clear()


def _started(kind: str, directory: Path) -> Server:
    if kind == "ours":
        server: Server = KafkaCompatBroker(directory)
    else:
        server = GenuineKafka(directory, version=NEWEST_VERSION, mode="kraft")
    server.start(180)
    return server


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    found = JavaTools(NEWEST_VERSION)
    yield found
    found.close()


@pytest.fixture(scope="module", params=campaign.sides())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = _started(request.param, tmp_path_factory.mktemp(request.param))
    groups = Groups(running.address)
    yield running
    groups.close()
    running.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("files")
    (found / "client.properties").write_text("client.id=someone\n")
    return str(found)


@pytest.mark.parametrize("name", ["consumer-protocol", "groups"])
def test_commands_print_the_same_output_as_kafka(
    server: Server, tools: JavaTools, files: str, name: str
) -> None:
    variable = {r"^\d[^,]*, .*": "ROW", r"^\d\.\d\.\d$": "VERSION", r" +": " "}
    found = Comparison(tools, server.address, files).differences(table(name), variable)
    assert not found, "\n".join(found)


@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
def test_kafkas_tools_print_the_same_output_as_for_kafka(tools: JavaTools, tmp_path: Path) -> None:
    lines = [*lines_of(table("consumer-protocol"))[:SAME_ON_ALL_BROKERS], *lines_of(table("groups"))]
    printed: dict[str, list[list[str]]] = {}
    for kind in ("genuine", "ours"):
        running = _started(kind, tmp_path / kind)
        groups = Groups(running.address)
        printed[kind] = []
        for line in lines:
            words = [word.replace("{broker}", running.address) for word in line.arguments]
            result = tools.run(line.tool, *words)
            output = neutral_lines(result.out + result.err, replaced=VARIABLE)
            printed[kind].append([str(line), str(result.code), *sorted(output)])
        groups.close()
        running.stop()
    assert printed["ours"] == printed["genuine"]
