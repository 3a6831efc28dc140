"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, compared with Apache Kafka 3.9.1."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.comparison import differences, neutral
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(kind: int, name: str, keys: list[str] | None = None, **more: Any) -> Plain:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return {"resources": [resource], **more}


EVERYTHING: Plain = {"include_synonyms": True, "include_documentation": True}


def test_every_topic_config_is_described_as_in_apache_kafka(pair: Pair) -> None:
    """Each config has the same default, source, synonyms and type, and is documented."""
    plain_topic = pair.topic()
    changed = pair.topic(configs={"retention.ms": "1234567", "cleanup.policy": "compact"})
    found = []
    for topic in (plain_topic, changed):
        for version in pair.versions(ApiKey.DESCRIBE_CONFIGS):
            answers = pair.both(ApiKey.DESCRIBE_CONFIGS, version, describe(TOPIC, topic, **EVERYTHING))
            ours, genuine = (
                neutral(_without_documentation(answer), ApiKey.DESCRIBE_CONFIGS) for answer in answers
            )
            shown = differences(ours, genuine, ApiKey.DESCRIBE_CONFIGS)
            found += [f"v{version} {line}" for line in shown]
    assert not found, "\n".join(found[:40])


def _without_documentation(answer: Any) -> Any:
    """Reduce the documentation of configs to whether there is any, because the two projects' texts differ."""
    for result in answer["results"]:
        for config in result["configs"]:
            config["documentation"] = bool(config["documentation"])
    return answer


def test_only_requested_keys_are_described(pair: Pair) -> None:
    topic = pair.topic(configs={"segment.bytes": "1048576"})
    for keys in (["segment.bytes", "retention.ms"], [], ["no.such.config"]):
        pair.same(ApiKey.DESCRIBE_CONFIGS, describe(TOPIC, topic, keys))


def test_invalid_resources_are_not_described(pair: Pair) -> None:
    for kind, name in (
        (TOPIC, pair.name("absent")),
        (TOPIC, "a/b"),
        (TOPIC, ""),
        (BROKER, "77"),
        (BROKER, "x"),
    ):
        pair.same(ApiKey.DESCRIBE_CONFIGS, describe(kind, name))
    for kind in (0, 1, 99):
        pair.same(ApiKey.DESCRIBE_CONFIGS, describe(kind, "x"))


def test_broker_configs_have_the_same_names_types_and_flags_as_in_kafka(pair: Pair) -> None:
    """Each broker setting has the same name, type, sensitivity and read-only flag."""
    answers = pair.both(ApiKey.DESCRIBE_CONFIGS, 4, describe(BROKER, "1", **EVERYTHING))
    ours, genuine = (
        {
            config["name"]: (config["config_type"], config["read_only"], config["is_sensitive"])
            for config in answer["results"][0]["configs"]
        }
        for answer in answers
    )
    missing = sorted(genuine.keys() - ours.keys())
    other = {
        name: (ours[name], genuine[name]) for name in genuine if name in ours and ours[name] != genuine[name]
    }
    # Kafka 4 made this short an int.
    del other["group.share.max.size"]
    assert (missing, other) == ([], {})


def incremental(topic: str, *changes: tuple[int, str, str | None], validate_only: bool = False) -> Plain:
    configs = [{"config_operation": kind, "name": name, "value": value} for kind, name, value in changes]
    resource = {"resource_type": TOPIC, "resource_name": topic, "configs": configs}
    return {"resources": [resource], "validate_only": validate_only}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([(SET, "retention.ms", "999000")], id="set"),
        pytest.param([(DELETE, "segment.bytes", None)], id="delete"),
        pytest.param([(DELETE, "retention.ms", None)], id="delete an unset config"),
        pytest.param([(APPEND, "cleanup.policy", "compact")], id="append"),
        pytest.param([(SUBTRACT, "cleanup.policy", "delete")], id="subtract the last element"),
        pytest.param([(APPEND, "retention.ms", "5")], id="append to a scalar"),
        pytest.param([(SET, "retention.ms", None)], id="set to null"),
        pytest.param([(SET, "retention.ms", "x")], id="wrong type"),
        pytest.param([(SET, "no.such.config", "1")], id="unknown config"),
        pytest.param([(SET, "retention.ms", "1"), (SET, "retention.ms", "2")], id="same config twice"),
        pytest.param([(SET, "retention.ms", "1"), (SET, "flush.ms", "x")], id="one valid, one invalid"),
        pytest.param([], id="no changes"),
    ],
)
def test_incremental_changes_get_kafkas_responses_and_have_the_same_effect(
    pair: Pair, changes: list[tuple[int, str, str | None]]
) -> None:
    for version in pair.versions(ApiKey.INCREMENTAL_ALTER_CONFIGS):
        for validate_only in (True, False):
            topic = pair.topic(configs={"segment.bytes": "1048576"})
            request = incremental(topic, *changes, validate_only=validate_only)
            pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, (version,))
            pair.same(ApiKey.DESCRIBE_CONFIGS, describe(TOPIC, topic), (1,))


@pytest.mark.parametrize("broker", ["1", ""])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("num.replica.fetchers", value) for value in ("0", "1", "2", "3")),
        *(("num.io.threads", value) for value in ("3", "4", "16", "17")),
        *(("leader.replication.throttled.rate", value) for value in ("-1", "0", "1000", "x")),
    ],
)
def test_dynamic_broker_settings_are_validated_as_in_apache_kafka(
    pair: Pair, broker: str, name: str, value: str
) -> None:
    configs = [{"name": name, "config_operation": SET, "value": value}]
    resource = {"resource_type": BROKER, "resource_name": broker, "configs": configs}
    pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validate_only": True})


@pytest.mark.parametrize("value", ["*", "", "0:1", "0:1,1:2", "0:1:2", "x", "0", "0:x", "*,0:1", " 0:1"])
def test_values_of_the_throttled_replicas_setting_are_validated(pair: Pair, value: str) -> None:
    topic = pair.topic()
    pair.same(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        incremental(topic, (SET, "leader.replication.throttled.replicas", value)),
    )
    pair.same(ApiKey.DESCRIBE_CONFIGS, describe(TOPIC, topic), (1,))


def test_changes_to_unknown_resources_are_rejected(pair: Pair) -> None:
    pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental(pair.name("absent"), (SET, "retention.ms", "1")))
    for kind, name in ((BROKER, "77"), (0, "x"), (99, "x")):
        resource = {"resource_type": kind, "resource_name": name, "configs": []}
        pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource]})


def test_alter_configs_replaces_all_settings(pair: Pair) -> None:
    """Unlike IncrementalAlterConfigs, AlterConfigs resets the settings that the request does not contain."""
    for version in pair.versions(ApiKey.ALTER_CONFIGS):
        topic = pair.topic(configs={"segment.bytes": "1048576", "retention.ms": "5000"})

        def change(name: str, value: str | None, kind: int = TOPIC, resource: str = topic) -> Plain:
            configs = [{"name": name, "value": value}]
            return {"resources": [{"resource_type": kind, "resource_name": resource, "configs": configs}]}

        bad = [change("retention.ms", "x"), change("no.such", "1"), change("retention.ms", None)]
        bad.append(change("retention.ms", "1", resource=pair.name("absent")))
        for request in bad:
            pair.same(ApiKey.ALTER_CONFIGS, request, (version,))
        pair.same(ApiKey.DESCRIBE_CONFIGS, describe(TOPIC, topic), (1,))
        pair.same(ApiKey.ALTER_CONFIGS, change("retention.ms", "7000"), (version,))
        pair.same(ApiKey.DESCRIBE_CONFIGS, describe(TOPIC, topic), (1,))
