"""kafka-topics and the other administration commands: output and exit code are the same as with Kafka's
commands, on any Kafka broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.tools import features
from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.ports import adjacent_ports
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server
from tests.tools import admin_lines
from tests.tools.compare import Comparison
from tests.tools.world import Pair, Side

GUARDED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
OTHERS = ("3.9.1", "4.1.0")
"""Kafkas with KRaft."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("files")
    admin_lines.write_files(found)
    return str(found)


@pytest.fixture(scope="module", params=["genuine", "ours"][: campaign.rounds(1, 2)])
def side(request: pytest.FixtureRequest, pair: Pair) -> Side:
    """An Apache Kafka broker; in campaigns, also this project's broker."""
    return next(side for side in pair.sides if side.name == request.param)


@pytest.fixture(scope="module")
def comparison(side: Side, newest: JavaTools, files: str) -> Comparison:
    return Comparison(newest, side.address, files, in_processes=campaign.enabled())


@pytest.mark.parametrize("tool", list(admin_lines.TABLES))
def test_commands_print_the_same_output_as_kafka(comparison: Comparison, tool: str) -> None:
    found = comparison.differences(admin_lines.TABLES[tool])
    assert not found, "\n".join(found)


def test_commands_with_flags_removed_in_kafka_4_print_the_same_output_as_kafka(
    side: Side, files: str
) -> None:
    found = Comparison(side.tools, side.address, files).differences(admin_lines.DROPPED)
    assert not found, "\n".join(found)


def test_kafka_features_prints_the_same_output_as_kafka(comparison: Comparison) -> None:
    assert not comparison.differences(_some(admin_lines.FEATURES), admin_lines.JUSTIFIED)


@pytest.fixture(scope="module", params=campaign.sides())
def guarded(
    request: pytest.FixtureRequest, newest: JavaTools, files: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Comparison]:
    """Run the commands on a broker with an authorizer that allows everything."""
    kind = GenuineKafka if request.param == "genuine" else KafkaCompatBroker
    server: Server = kind(tmp_path_factory.mktemp(request.param), GUARDED)
    server.start(120)
    yield Comparison(newest, server.address, files)
    server.stop()


def test_kafka_acls_prints_the_same_output_as_kafka(guarded: Comparison) -> None:
    found = guarded.differences(admin_lines.ACLS)
    assert not found, "\n".join(found)


def test_commands_print_the_same_output_as_kafka_on_three_brokers(
    newest: JavaTools, files: str, tmp_path: Path
) -> None:
    server = KafkaCompatBroker(tmp_path, port=adjacent_ports(3), arguments=("--brokers", "3"))
    server.start()
    try:
        found = Comparison(newest, server.address, files)
        assert not found.differences(admin_lines.CLUSTER)
    finally:
        server.stop()


def test_log_directories_are_listed_in_the_same_order_as_by_kafkas_tools(
    newest: JavaTools, files: str, tmp_path: Path
) -> None:
    """The order is that of a hash table, and depends on its size."""
    folders = ",".join(str(tmp_path / f"disk-{number}") for number in range(6))
    server = KafkaCompatBroker(tmp_path, {"log.dirs": folders})
    server.start()
    try:
        admin = AdminClient({"bootstrap.servers": server.address})
        admin.create_topics([NewTopic("many", 60, 1), NewTopic("few", 9, 1)])["many"].result(60)
        lines = "kafka-log-dirs @ --describe\nkafka-log-dirs @ --describe --topic-list few"
        assert not Comparison(newest, server.address, files).differences(lines)
    finally:
        server.stop()


@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
@pytest.mark.parametrize("version", OTHERS)
def test_commands_print_the_same_output_as_kafka_on_kraft_clusters(
    version: str, newest: JavaTools, files: str, tmp_path: Path
) -> None:
    server = GenuineKafka(tmp_path, mode="kraft", version=version)
    server.start(120)
    try:
        topics = [NewTopic("alpha", 3, 1), NewTopic("beta", 1, 1), NewTopic("cut", 3, 1)]
        admin = AdminClient({"bootstrap.servers": server.address})
        for made in admin.create_topics(topics).values():
            made.result(60)
        found = Comparison(newest, server.address, files)
        text = "\n".join(admin_lines.TABLES.values())
        assert not found.differences(text)
        assert not found.differences(admin_lines.FEATURES, admin_lines.JUSTIFIED)
    finally:
        server.stop()


def _some(text: str) -> str:
    """Return all lines in a campaign, otherwise a part of them."""
    return "\n".join(text.splitlines()[:: campaign.rounds(16, 1)])


def test_levels_of_kafka_4_4_have_names() -> None:
    """The compared commands are those of Kafka 4.3, which print UNKNOWN."""
    assert [features.name_of(level) for level in (30, 31, 33, 34, 35)] == [
        "4.3-IV0",
        "4.4-IV0",
        "4.4-IV2",
        "4.5-IV0",
        None,
    ]
