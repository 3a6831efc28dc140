"""Group settings: validation with Kafka's messages, and effective values within the broker's limits.

tests/conformance/test_group_settings.py compares the messages with Apache Kafka 4.4.
"""

from __future__ import annotations

import pytest

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.config.auto_offset_reset import BY_DURATION, EARLIEST, AutoOffsetReset, parse_reset
from kafka_compat.config.group import (
    BROKER_SETTINGS,
    ConsumerGroupConfig,
    ShareGroupConfig,
    ShareGroupLimits,
    UnknownGroupConfig,
    check_group_config,
    consumer_group_config,
    consumer_group_limits,
    group_keys,
    share_group_config,
    share_group_limits,
)

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
WIDE = {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "20000"}


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({SESSION: "44999"}, f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        ({SESSION: "60001"}, f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        ({HEARTBEAT: "4999"}, f"{HEARTBEAT} must be in the range 5000 to 15000 inclusive."),
        ({SESSION: "1", HEARTBEAT: "1"}, f"{HEARTBEAT} must be in the range 5000 to 15000 inclusive."),
        ({INTERVAL: "15001"}, f"{INTERVAL} must be in the range 0 to 15000 inclusive."),
        ({INTERVAL: "-1"}, f"Invalid value -1 for configuration {INTERVAL}: Value must be at least 0"),
        ({SESSION: "x"}, f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
    ],
)
def test_values_outside_the_brokers_limits_are_rejected(overrides: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        check_group_config(BrokerConfig({}), overrides)
    assert str(failed.value) == problem


@pytest.mark.parametrize("overrides", [{SESSION: "5000"}, {HEARTBEAT: "15000", SESSION: "15000"}])
def test_a_session_must_be_longer_than_the_heartbeat_interval(overrides: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as failed:
        check_group_config(BrokerConfig(WIDE), overrides)
    assert str(failed.value) == f"{SESSION} must be greater than {HEARTBEAT}"


def test_valid_settings_are_accepted_and_unknown_ones_are_not() -> None:
    check_group_config(BrokerConfig({}), {SESSION: "45000", HEARTBEAT: "15000", INTERVAL: "0"})
    check_group_config(BrokerConfig(WIDE), {SESSION: "5001"})
    for name in ("streams.num.standby.replicas", "streams.session.timeout.ms", "nope"):
        with pytest.raises(UnknownGroupConfig, match=f"Unknown group config name: {name}"):
            check_group_config(BrokerConfig({}), {name: "50000"})


def test_the_broker_settings_are_the_defaults_of_groups() -> None:
    assert consumer_group_config(BrokerConfig({}), {}) == ConsumerGroupConfig(45_000, 5000, 1000)
    config = BrokerConfig({**WIDE, "group.consumer.assignment.interval.ms": "0"})
    assert consumer_group_config(config, {}) == ConsumerGroupConfig(20_000, 5000, 0)
    assert consumer_group_config(config, {SESSION: "50000"}) == ConsumerGroupConfig(50_000, 5000, 0)


def test_stored_values_are_clamped_to_limits_that_changed_later() -> None:
    stored = {SESSION: "2000", HEARTBEAT: "99999", INTERVAL: "no number"}
    assert consumer_group_config(BrokerConfig({}), stored) == ConsumerGroupConfig(45_000, 15_000, 1000)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"group.consumer.session.timeout.ms": "1000"},
            "group.consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "20000"},
            "group.consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {
                "group.consumer.max.assignment.interval.ms": "1",
                "group.consumer.min.assignment.interval.ms": "2",
            },
            "group.consumer.max.assignment.interval.ms must be greater than or equal to "
            "group.consumer.min.assignment.interval.ms",
        ),
        (
            {**WIDE, "group.consumer.session.timeout.ms": "5000"},
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
        ({"group.consumer.assignors": "com.example.Own"}, "Invalid value com.example.Own for configuration"),
    ],
)
def test_a_broker_with_contradictory_limits_does_not_start(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        BrokerConfig(settings)


def test_the_limits_of_a_broker_have_kafkas_defaults() -> None:
    limits = consumer_group_limits(BrokerConfig({}))
    assert limits.size_max == 2**31 - 1
    assert limits.assignors == ("uniform", "range")
    assert (limits.may_upgrade, limits.may_downgrade) == (True, True)
    assert limits.regex_refresh_interval_ms == 600_000


@pytest.mark.parametrize(
    ("policy", "up", "down"),
    [("disabled", False, False), ("UPGRADE", True, False), ("Downgrade", False, True)],
)
def test_the_migration_policy_limits_conversions(policy: str, up: bool, down: bool) -> None:
    limits = consumer_group_limits(BrokerConfig({"group.consumer.migration.policy": policy}))
    assert (limits.may_upgrade, limits.may_downgrade) == (up, down)


def test_assignors_may_be_named_after_kafkas_classes() -> None:
    """Kafka 3.9's default consists of class names."""
    package = "org.apache.kafka.coordinator.group.assignor"
    named = f"{package}.RangeAssignor,uniform,{package}.UniformAssignor"
    limits = consumer_group_limits(BrokerConfig({"group.consumer.assignors": named}))
    assert limits.assignors == ("range", "uniform")


def test_every_group_setting_has_a_broker_setting() -> None:
    assert group_keys().keys() == BROKER_SETTINGS.keys()


RESET, LOCKS = "share.auto.offset.reset", "share.partition.max.record.locks"


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({LOCKS: "99"}, f"Invalid value 99 for configuration {LOCKS}: Value must be at least 100"),
        ({LOCKS: "4001"}, f"{LOCKS} must be in the range 100 to 4000 inclusive."),
        ({"share.delivery.count.limit": "11"}, "share.delivery.count.limit must be in the range 2 to 10 inc"),
        (
            {"share.session.timeout.ms": "1"},
            "share.session.timeout.ms must be in the range 45000 to 60000 in",
        ),
        (
            {"share.isolation.level": "x"},
            "Invalid value x for configuration share.isolation.level: String mu",
        ),
        ({RESET: "none"}, f"Invalid value none for configuration {RESET}: Invalid value `none` for configur"),
        (
            {"errors.deadletterqueue.topic.name": "__x"},
            "errors.deadletterqueue.topic.name: DLQ topic name mu",
        ),
    ],
)
def test_invalid_settings_of_share_groups_are_rejected(overrides: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        check_group_config(BrokerConfig({}), overrides)
    assert str(failed.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("P1D", 86_400_000),
        ("PT1H30.5S", 3_630_500),
        ("pt1h", 3_600_000),
        ("P-1DT25H", 3_600_000),
        ("-PT-1S", 1_000),
        ("PT1,5S", 1_500),
        ("PT0S", 0),
    ],
)
def test_durations_are_parsed_as_in_java(text: str, duration_ms: int) -> None:
    assert parse_reset(f"by_duration:{text}") == AutoOffsetReset(BY_DURATION, duration_ms)


@pytest.mark.parametrize(
    "text", ["-PT1H", "P1W", "P1DT", "", "PT-1H", "P1Y", "PT1S:", f"PT{10**20}H", " PT1H", "P", "PT"]
)
def test_invalid_and_negative_durations_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"^by_duration:"):
        parse_reset(f"by_duration:{text}")


def test_share_groups_have_the_brokers_settings_unless_they_override_them() -> None:
    config = BrokerConfig({"group.share.record.lock.duration.ms": "20000", "group.share.max.size": "3"})
    assert share_group_config(BrokerConfig({}), {}) == ShareGroupConfig()
    assert share_group_config(config, {}) == ShareGroupConfig(record_lock_duration_ms=20_000)
    overrides = {
        RESET: "earliest",
        "share.isolation.level": "read_committed",
        "share.renew.acknowledge.enable": "false",
        "errors.deadletterqueue.topic.name": "dlq.x",
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    found = share_group_config(config, overrides)
    assert found.auto_offset_reset == AutoOffsetReset(EARLIEST)
    assert found[-4:] == (True, False, "dlq.x", True)
    assert share_group_limits(BrokerConfig({})) == ShareGroupLimits()
    assert share_group_limits(config).size_max == 3
