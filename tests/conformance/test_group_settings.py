"""Settings of groups: the same error codes, messages, values and sources as from Apache Kafka 4.4.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.config.group import group_keys
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka, KafkaCompatBroker

pytestmark = pytest.mark.skipif(
    not campaign.enabled(), reason="needs a further Kafka release; normal runs use tests/metadata"
)

GROUP = 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
SETTINGS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "20000",
    "group.consumer.max.heartbeat.interval.ms": "30000",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Our broker and the newest Apache Kafka, with limits that allow short sessions."""
    ours = KafkaCompatBroker(tmp_path_factory.mktemp("ours"), SETTINGS)
    genuine = GenuineKafka(tmp_path_factory.mktemp("genuine"), SETTINGS, version=NEWEST_VERSION, mode="kraft")
    ours.start()
    genuine.start(180)
    found = Pair(ours.address, genuine.address)
    yield found
    found.close()
    genuine.stop()
    ours.stop()


def incremental(group_id: str, *changes: tuple[int, str, str | None], is_valid_only: bool = False) -> Plain:
    configs = [{"config_operation": kind, "name": name, "value": value} for kind, name, value in changes]
    resource = {"resource_type": GROUP, "resource_name": group_id, "configs": configs}
    return {"resources": [resource], "validate_only": is_valid_only}


def same_description(pair: Pair, group_id: str) -> None:
    """Compare the settings that this broker supports. Documentation has our own words."""
    resource = {"resource_type": GROUP, "resource_name": group_id, "configuration_keys": [*group_keys()]}
    request: Plain = {"resources": [resource], "include_synonyms": True}
    pair.same(ApiKey.DESCRIBE_CONFIGS, request)


CHANGES = [
    pytest.param([(SET, SESSION, "50000")], id="set"),
    pytest.param([(SET, SESSION, "21000"), (SET, HEARTBEAT, "20000")], id="set two"),
    pytest.param([(SET, SESSION, "999")], id="below the limit"),
    pytest.param([(SET, SESSION, "60001")], id="above the limit"),
    pytest.param([(SET, HEARTBEAT, "30001")], id="heartbeat above the limit"),
    pytest.param([(SET, INTERVAL, "0")], id="no interval"),
    pytest.param([(SET, INTERVAL, "15001")], id="interval above the limit"),
    pytest.param([(SET, INTERVAL, "-1")], id="negative interval"),
    pytest.param([(SET, SESSION, "5000")], id="session as short as the default heartbeat"),
    pytest.param([(SET, HEARTBEAT, "20000")], id="heartbeat as long as the default session"),
    pytest.param([(SET, SESSION, "7000"), (SET, HEARTBEAT, "7000")], id="session as short as the heartbeat"),
    pytest.param([(SET, SESSION, "x")], id="wrong type"),
    pytest.param([(SET, SESSION, "")], id="empty"),
    pytest.param([(SET, SESSION, None)], id="null"),
    pytest.param([(SET, SESSION, "1"), (SET, "nope", "1")], id="unknown and invalid"),
    pytest.param([(SET, SESSION, "1"), (SET, HEARTBEAT, "x")], id="limit and wrong type"),
    pytest.param([(SET, SESSION, "1"), (SET, HEARTBEAT, "1")], id="two limits"),
    pytest.param([(SET, SESSION, "50000"), (SET, SESSION, "50001")], id="twice"),
    pytest.param([(DELETE, SESSION, None)], id="delete an unset setting"),
    pytest.param([(DELETE, "nope", None)], id="delete an unknown setting"),
    pytest.param([(APPEND, SESSION, "1")], id="append"),
    pytest.param([(SUBTRACT, "nope", "1")], id="subtract from an unknown setting"),
    pytest.param([], id="no changes"),
]


@pytest.mark.parametrize("changes", CHANGES)
def test_changes_of_groups_get_kafkas_responses_and_have_the_same_effect(
    pair: Pair, changes: list[tuple[int, str, str | None]]
) -> None:
    for version in pair.versions(ApiKey.INCREMENTAL_ALTER_CONFIGS):
        for is_valid_only in (True, False):
            group_id = pair.name("group")
            request = incremental(group_id, *changes, is_valid_only=is_valid_only)
            pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, (version,))
            same_description(pair, group_id)


def test_alter_configs_replaces_all_settings_of_a_group_as_in_kafka(pair: Pair) -> None:
    group_id = pair.name("group")
    for settings in (
        {SESSION: "50000"},
        {HEARTBEAT: "6000", INTERVAL: "5"},
        {SESSION: "1"},
        {"nope": "1"},
        {SESSION: None},
        {},
    ):
        configs = [{"name": name, "value": value} for name, value in settings.items()]
        resource = {"resource_type": GROUP, "resource_name": group_id, "configs": configs}
        for is_valid_only in (True, False):
            pair.same(ApiKey.ALTER_CONFIGS, {"resources": [resource], "validate_only": is_valid_only})
        same_description(pair, group_id)


def test_the_empty_group_id_is_rejected_as_in_kafka(pair: Pair) -> None:
    same_description(pair, "")
    pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental("", (SET, SESSION, "50000")))


def test_groups_with_settings_are_listed_as_in_kafka(pair: Pair) -> None:
    names = [pair.name("group"), "a/b", "<default>", "ü ~.."]
    for group_id in names:
        pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental(group_id, (SET, SESSION, "50000")))
    pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental(names[0], (DELETE, SESSION, None)))
    for resource_types in ([GROUP], [GROUP, 4], [GROUP, 99]):
        shown = []
        for answer in pair.both(ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": resource_types}):
            found = {(each["resource_type"], each["resource_name"]) for each in answer["config_resources"]}
            shown.append((answer["error_code"], {each for each in found if each[1] in names}))
        assert shown[0] == shown[1]
    pair.same(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": [GROUP]}, (0,))


def test_settings_survive_a_restart_of_our_broker(tmp_path: Path) -> None:
    broker = KafkaCompatBroker(tmp_path)
    broker.start()
    pair = Pair(broker.address, broker.address)
    pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental("g", (SET, SESSION, "50000")))
    pair.close()
    broker.restart()
    pair = Pair(broker.address, broker.address)
    answer = pair.same(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": [GROUP]}, (1,))
    assert answer["config_resources"] == [{"resource_name": "g", "resource_type": GROUP}]
    pair.close()
    broker.stop()
