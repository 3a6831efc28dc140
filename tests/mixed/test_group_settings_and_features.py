"""Settings of groups and feature levels with two of our brokers and Apache Kafka 3.9.1 on one ZooKeeper.

Apache Kafka 3.9 supports neither with ZooKeeper. It must not be affected by them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import registry
from tests.conformance.wire import Connection, Plain
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import TOOLS_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

BROKER, GROUP = 4, 32
SESSION = "consumer.session.timeout.ms"
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


class Together:
    def __init__(self, genuine: GenuineKafka, ours: list[KafkaCompatBroker]) -> None:
        self.genuine = genuine
        self.ours = ours

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self.ours]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """Brokers 2 and 3 are ours, and one of them is the controller. Broker 1 is Apache Kafka."""
    directory = tmp_path_factory.mktemp("together")
    zookeeper = ZooKeeper(directory / "zookeeper")
    genuine = GenuineKafka(directory / "genuine", {"broker.id": "1"}, zookeeper=zookeeper, heap="256M")
    place = {"zookeeper.connect": zookeeper.address}
    ours = [KafkaCompatBroker(directory / each, {**place, "broker.id": each}) for each in ("2", "3")]
    with contextlib.ExitStack() as stack:
        for server in (zookeeper, *ours, genuine):
            stack.callback(server.stop)
            server.start(120)
        yield Together(genuine, ours)


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    found = JavaTools(TOOLS_VERSION)
    yield found
    found.close()


def ask(address: str, key: ApiKey, version: int, request: Plain) -> Plain:
    with Connection(address) as connection:
        return connection.ask(key, version, request)


def described(address: str, kind: int, name: str, setting: str) -> tuple[str, int]:
    """Return the value and the source of a setting as the broker itself reports it."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": [setting]}
    (found,) = ask(address, ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})["results"]
    return found["configs"][0]["value"], found["configs"][0]["config_source"]


def levels(address: str) -> dict[str, int]:
    answer = ask(address, ApiKey.API_VERSIONS, 4, SOFTWARE)
    return {each["name"]: each["max_version_level"] for each in answer["finalized_features"]}


def test_a_group_setting_is_harmless_to_apache_kafka(brokers: Together) -> None:
    one, other = brokers.addresses
    change = (
        "--alter",
        "--entity-type",
        "groups",
        "--entity-name",
        "a/b",
        "--add-config",
        f"{SESSION}=50000",
    )
    assert registry.run("configs", ["--bootstrap-server", one, *change]) == 0
    assert described(other, GROUP, "a/b", SESSION) == ("50000", 8)
    # Apache Kafka logs the change, which it cannot apply, and still applies later changes.
    retention = ("--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=7200000")
    assert registry.run("configs", ["--bootstrap-server", one, "--alter", *retention]) == 0
    theirs = brokers.genuine.address
    wait_until(
        lambda: described(theirs, BROKER, "1", "log.retention.ms") == ("7200000", 3),
        30,
        "the setting in Apache Kafka",
        0.05,
    )
    assert "groups/a%2Fb" in brokers.genuine.log.read_text()


def test_levels_are_raised_only_without_apache_kafka_which_may_return_after_downgrades(
    brokers: Together, tools: JavaTools
) -> None:
    one, other = brokers.addresses
    assert levels(one) == levels(other) == {}

    def change(command: str, *arguments: str) -> str:
        printed = tools.run("kafka-features", "--bootstrap-server", one, command, *arguments)
        return printed.out + printed.err

    upgrades = ("--feature", "group.version=1", "--feature", "transaction.version=2")
    assert "Broker 1 does not support this feature" in change("upgrade", *upgrades)
    assert levels(one) == levels(other) == {}
    brokers.genuine.stop()
    wait_until(lambda: "was upgraded to 1" in change("upgrade", *upgrades), 60, "the upgrade", 0.5)
    raised = {"group.version": 1, "transaction.version": 2}
    wait_until(lambda: levels(one) == levels(other) == raised, 30, "the levels on both brokers", 0.05)

    # A broker of Kafka 3.9 does not find the levels, so it can start even now.
    brokers.genuine.start(120)
    assert levels(brokers.genuine.address) == {}
    assert brokers.genuine.running
    disabled = change("disable", "--feature", "group.version", "--feature", "transaction.version")
    assert "was disabled" in disabled
    wait_until(lambda: levels(one) == levels(other) == {}, 30, "the disabled features", 0.05)


def test_only_the_controller_changes_levels(brokers: Together) -> None:
    answers = [ask(address, ApiKey.UPDATE_FEATURES, 2, {}) for address in brokers.addresses]
    assert sorted(each["error_code"] for each in answers) == [ErrorCode.NONE, ErrorCode.NOT_CONTROLLER]
