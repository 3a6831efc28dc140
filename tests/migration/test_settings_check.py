"""kafka-compat migrate check: the settings of a genuine broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.migration.findings import Finding, Level
from kafka_compat.migration.settings_check import check_settings

PLAIN = {
    "broker.id": "3",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "/var/lib/kafka",
    "zookeeper.connect": "127.0.0.1:2181",
}


def _findings(level: Level, **settings: str) -> list[Finding]:
    static = PLAIN | {name.replace("_", "."): value for name, value in settings.items()}
    return [each for each in check_settings(static).findings if each.level is level]


def test_nothing_stands_in_the_way_of_a_plain_broker() -> None:
    checked = check_settings(PLAIN)
    assert [each.level for each in checked.findings] == [Level.INFO]
    assert checked.broker == 3


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("inter.broker.protocol.version", "2.6", "expected 2.8 to 3.9"),
        ("num.network.threads", "many", "expected a whole number"),
        ("listeners", "CORP://127.0.0.1:9092", "CORP:PLAINTEXT"),
        ("authorizer.class.name", "com.example.Ranger", "kafka.security.authorizer.AclAuthorizer"),
        ("remote.log.storage.system.enable", "true", "expected false"),
        ("principal.builder.class", "com.example.Names", "expected the default"),
        ("create.topic.policy.class.name", "com.example.Policy", "ACLs"),
        ("control.plane.listener.name", "CONTROL", "inter-broker listener"),
        ("config.providers", "file", "expected no providers"),
        ("zookeeper.metadata.migration.enable", "true", "mirror"),
    ],
)
def test_a_setting_that_must_change_is_named_with_its_value_and_what_is_right(
    name: str, value: str, remedy: str
) -> None:
    (finding,) = _findings(Level.CHANGE, **{name: value})
    assert finding.text.startswith(f"{name}={value}")
    assert remedy in finding.remedy
    assert finding.broker == 3


def test_all_wrong_settings_are_reported_at_once() -> None:
    found = _findings(Level.CHANGE, num_network_threads="x", num_io_threads="y", log_retention_ms="0")
    assert {each.text.partition("=")[0] for each in found} == {
        "num.network.threads",
        "num.io.threads",
        "log.retention.ms",
    }


def test_settings_without_effect_and_unknown_settings_differ() -> None:
    found = _findings(Level.DIFFERS, metric_reporters="com.example.Reporter", my_plugin_option="1")
    assert [each.text for each in found] == [
        "metric.reporters=com.example.Reporter: has no effect here",
        "my.plugin.option=1: unknown, and ignored",
    ]


def test_defaults_that_differ_from_kafkas_must_be_set() -> None:
    found = check_settings({"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}).findings
    changes = [each for each in found if each.level is Level.CHANGE]
    assert [each.remedy for each in changes] == [
        "set log.dirs=/tmp/kafka-logs in server.properties",
        "set listeners=PLAINTEXT://:9092 in server.properties",
    ]


def test_the_message_format_matters_only_with_an_older_protocol() -> None:
    old = {"log.message.format.version": "0.10.2"}
    assert not _findings(Level.DIFFERS, **old)
    (finding,) = _findings(Level.DIFFERS, **old, **{"inter.broker.protocol.version": "2.8"})
    assert "format 2" in finding.text


def test_nodes_in_kraft_mode_are_referred_to_the_mirror() -> None:
    (finding,) = check_settings({"process.roles": "broker", "node.id": "4"}).findings
    assert (finding.broker, finding.level) == (4, Level.CHANGE)
    assert "pipeline mirror" in finding.remedy


def test_files_that_are_not_on_this_machine_are_named(tmp_path: Path) -> None:
    path = tmp_path / "keystore.jks"
    found = _findings(
        Level.CHANGE,
        listeners="SSL://127.0.0.1:9092",
        security_inter_broker_protocol="SSL",
        ssl_keystore_location=str(path),
    )
    assert found[0].text == f"ssl.keystore.location={path}: the file is not on this machine"
    assert {each.area for each in found} == {"security"}
