"""Levels of a broker's loggers (KIP-412), compared with Apache Kafka 3.9.1 for the loggers that both have."""

from __future__ import annotations

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain

BROKER_LOGGER = 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
DYNAMIC_BROKER_LOGGER = 6


def change(*changes: tuple[int, str, str | None], broker: str = "1", validate_only: bool = False) -> Plain:
    configs = [{"config_operation": kind, "name": name, "value": value} for kind, name, value in changes]
    resource = {"resource_type": BROKER_LOGGER, "resource_name": broker, "configs": configs}
    return {"resources": [resource], "validate_only": validate_only}


def describe(keys: list[str] | None, broker: str = "1") -> Plain:
    resource = {"resource_type": BROKER_LOGGER, "resource_name": broker, "configuration_keys": keys}
    return {"resources": [resource], "include_synonyms": True, "include_documentation": True}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([(SET, "no.such.logger", "DEBUG")], id="unknown logger"),
        pytest.param([(DELETE, "no.such.logger", None)], id="delete an unknown logger"),
        pytest.param([(SET, "kafka", "LOUD")], id="unknown level"),
        pytest.param([(SET, "kafka", "debug")], id="level in lower case"),
        pytest.param([(SET, "kafka", "OFF")], id="level that only log4j has"),
        pytest.param([(SET, "kafka", "")], id="empty level"),
        pytest.param([(SET, "kafka", None)], id="null"),
        pytest.param([(DELETE, "root", None)], id="delete the root level"),
        pytest.param([(APPEND, "kafka", "DEBUG")], id="append"),
        pytest.param([(SUBTRACT, "root", "DEBUG")], id="subtract"),
        pytest.param([(SET, "kafka", "DEBUG"), (SET, "kafka", "INFO")], id="same logger twice"),
        pytest.param([(SET, "no.such", "DEBUG"), (APPEND, "kafka", "DEBUG")], id="first error is reported"),
        pytest.param([(APPEND, "kafka", "DEBUG"), (SET, "no.such", "DEBUG")], id="errors in order"),
        pytest.param([], id="no changes"),
    ],
)
def test_invalid_level_changes_are_rejected(pair: Pair, changes: list[tuple[int, str, str | None]]) -> None:
    for version in pair.versions(ApiKey.INCREMENTAL_ALTER_CONFIGS):
        pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, change(*changes), (version,))


@pytest.mark.parametrize("broker", ["", "77", "x"])
def test_requests_for_loggers_of_other_brokers_are_rejected(pair: Pair, broker: str) -> None:
    request = change((SET, "kafka", "DEBUG"), broker=broker)
    ours, genuine = (side["responses"][0] for side in pair.both(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request))
    assert ours["error_code"] == genuine["error_code"]
    # Kafka's message wrongly says that it received 1, its own id.
    assert ours["error_message"] == genuine["error_message"].replace("received 1", "received 77")
    pair.same(ApiKey.DESCRIBE_CONFIGS, describe(["kafka"], broker))


def test_levels_are_set_described_and_deleted(pair: Pair) -> None:
    """The loggers that both brokers have are the root logger and `kafka`, which stands for all of ours."""
    before = [side["results"][0]["configs"] for side in pair.both(ApiKey.DESCRIBE_CONFIGS, 4, describe(None))]
    for configs in before:
        assert {"root", "kafka"} <= {config["name"] for config in configs}
        assert {config["config_source"] for config in configs} == {DYNAMIC_BROKER_LOGGER}
    root = {side["results"][0]["configs"][0]["value"] for side in pair.both(*_asked("root"))}
    try:
        for level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
            pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, change((SET, "root", level)))
            pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, change((SET, "kafka", "ERROR")))
            pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, change((SET, "kafka", "FATAL"), validate_only=True))
            pair.same(ApiKey.DESCRIBE_CONFIGS, describe(["root", "kafka"]))
            pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, change((DELETE, "kafka", None)))
            pair.same(ApiKey.DESCRIBE_CONFIGS, describe(["root", "kafka", "no.such.logger"]))
    finally:
        back = "WARN" if "WARN" in root else "INFO"
        pair.both(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change((SET, "root", back)))
        pair.both(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change((SET, "kafka", back)))


def _asked(name: str) -> tuple[ApiKey, int, Plain]:
    return ApiKey.DESCRIBE_CONFIGS, 4, describe([name])
