"""Group settings (KIP-848, KIP-932, KIP-1240): validation, and the effective values of a group.

A group's settings override the broker settings `group.*`. The broker also limits them: a value outside the
limits is rejected. If the limits change later, the stored value is clamped to them.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from kafka_compat.config.auto_offset_reset import LATEST, AutoOffsetReset, parse_reset
from kafka_compat.config.group_table import GROUP_TABLE
from kafka_compat.config.keys import ConfigError, ConfigKey, TypedValues, Value, keys_of_table


class UnknownGroupConfig(Exception):
    """Raised for an unknown group setting."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown group config name: {name}")
        self.name = name


class BrokerSettings(NamedTuple):
    """The broker settings with the default and the limits of a group setting. None: no such setting."""

    default: str | None = None
    low: str | None = None
    high: str | None = None


#: Maps each group setting to its broker settings, in the order in which Kafka validates the values.
BROKER_SETTINGS: dict[str, BrokerSettings] = {
    "consumer.heartbeat.interval.ms": BrokerSettings(
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "consumer.session.timeout.ms": BrokerSettings(
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    "consumer.assignment.interval.ms": BrokerSettings(
        "group.consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    "share.heartbeat.interval.ms": BrokerSettings(
        "group.share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    "share.session.timeout.ms": BrokerSettings(
        "group.share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    "share.record.lock.duration.ms": BrokerSettings(
        "group.share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "share.delivery.count.limit": BrokerSettings(
        "group.share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    "share.partition.max.record.locks": BrokerSettings(
        "group.share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    "share.assignment.interval.ms": BrokerSettings(
        "group.share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    "share.auto.offset.reset": BrokerSettings(),
    "share.isolation.level": BrokerSettings(),
    "share.renew.acknowledge.enable": BrokerSettings(),
    "errors.deadletterqueue.topic.name": BrokerSettings(),
    "errors.deadletterqueue.copy.record.enable": BrokerSettings(),
}

_SESSIONS_AND_HEARTBEATS = (
    ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "share.heartbeat.interval.ms"),
)
"""Pairs of settings, of which the first must be greater than the second."""


class ConsumerGroupConfig(NamedTuple):
    """The effective settings of one group for the consumer protocol."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class ShareGroupConfig(NamedTuple):
    """The effective settings of one share group (KIP-932)."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    auto_offset_reset: AutoOffsetReset = AutoOffsetReset(LATEST)
    is_read_committed: bool = False
    is_renew_enabled: bool = True
    dead_letter_topic: str | None = None
    """The topic of the dead letter queue, or None if the group has no queue (KIP-1191)."""
    copies_dead_letters: bool = False
    """Whether a dead letter contains the key and the value of the original record."""


class ShareGroupLimits(NamedTuple):
    """The broker's settings for all share groups."""

    size_max: int = 200
    """Maximum number of members of a group."""
    share_sessions_max: int = 2_000
    """Maximum number of share sessions of a broker."""
    initialize_retry_interval_ms: int = 30_000
    """Time after which the initialization of the state of share-partitions is attempted again."""
    dead_letter_topic_prefix: str = "dlq."
    creates_dead_letter_topics: bool = False


class ConsumerGroupLimits(NamedTuple):
    """The broker's settings for all groups that use the consumer protocol."""

    size_max: int
    """Maximum number of members of a group."""
    assignors: tuple[str, ...]
    """Short names of the assignors on the broker. A group without a preference uses the first."""
    may_upgrade: bool
    """Whether a member of the consumer protocol may convert a classic group with members."""
    may_downgrade: bool
    """Whether a group becomes classic when its last member of the consumer protocol leaves."""
    regex_refresh_interval_ms: int


@cache
def group_keys() -> dict[str, ConfigKey]:
    """Return all group settings by name."""
    return keys_of_table(GROUP_TABLE, "dynamic")


def check_group_config(config: TypedValues, overrides: Mapping[str, str]) -> None:
    """Raise UnknownGroupConfig or ConfigError if a group must not have these settings."""
    keys = group_keys()
    for name in overrides:
        if name not in keys:
            raise UnknownGroupConfig(name)
    values = {name: key.parse(overrides[name]) for name, key in keys.items() if name in overrides}
    for name, (_, low, high) in BROKER_SETTINGS.items():
        if name in values:
            _check_limits(config, name, values[name], low, high)
    for session, heartbeat in _SESSIONS_AND_HEARTBEATS:
        if session in values or heartbeat in values:
            pair = (
                values[name] if name in values else _default(config, name) for name in (session, heartbeat)
            )
            _check_order(session, heartbeat, *pair)
    topic = values.get("errors.deadletterqueue.topic.name")
    if isinstance(topic, str) and topic.startswith("__"):
        problem = "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"
        raise ConfigError("errors.deadletterqueue.topic.name", topic, problem, whole=True)


def _default(config: TypedValues, name: str) -> Value:
    """Return the value of a group setting for groups that do not override it."""
    default = BROKER_SETTINGS[name].default
    if default is not None:
        return config.get(default)
    key = group_keys()[name]
    return None if key.default is None else key.parse(key.default)


def _check_limits(config: TypedValues, name: str, value: Value, low: str | None, high: str | None) -> None:
    if low is None and high is None:
        return
    assert isinstance(value, int)
    lowest, highest = (None if limit is None else config.int(limit) for limit in (low, high))
    if (lowest is None or lowest <= value) and (highest is None or value <= highest):
        return
    if highest is None:
        problem = f"{name} must be greater than or equal to {low} ({lowest})."
    elif lowest is None:
        problem = f"{name} must be less than or equal to {high} ({highest})."
    else:
        problem = f"{name} must be in the range {lowest} to {highest} inclusive."
    raise ConfigError(name, str(value), problem, whole=True)


def _check_order(session: str, heartbeat: str, session_ms: Value, heartbeat_ms: Value) -> None:
    assert isinstance(session_ms, int)
    assert isinstance(heartbeat_ms, int)
    if session_ms <= heartbeat_ms:
        problem = f"{session} must be greater than {heartbeat}"
        raise ConfigError(session, str(session_ms), problem, whole=True)


def effective_value(config: TypedValues, overrides: Mapping[str, str], name: str) -> Value:
    """Return the effective value of a group setting: the group's value, within the broker's limits, or the
    broker's default. Invalid values, which another version may have stored, are ignored.
    """
    _, low, high = BROKER_SETTINGS[name]
    try:
        value = group_keys()[name].parse(overrides[name])
    except (KeyError, ConfigError):
        return _default(config, name)
    if isinstance(value, int):
        if low is not None:
            value = max(value, config.int(low))
        if high is not None:
            value = min(value, config.int(high))
    return value


def consumer_group_config(config: TypedValues, overrides: Mapping[str, str]) -> ConsumerGroupConfig:
    """Return the effective settings of a group with these overrides."""

    def milliseconds(name: str) -> int:
        value = effective_value(config, overrides, name)
        assert isinstance(value, int)
        return value

    return ConsumerGroupConfig(
        milliseconds("consumer.session.timeout.ms"),
        milliseconds("consumer.heartbeat.interval.ms"),
        milliseconds("consumer.assignment.interval.ms"),
    )


def share_group_config(config: TypedValues, overrides: Mapping[str, str]) -> ShareGroupConfig:
    """Return the effective settings of a share group with these overrides."""

    def number(name: str) -> int:
        value = effective_value(config, overrides, name)
        assert isinstance(value, int)
        return value

    reset = effective_value(config, overrides, "share.auto.offset.reset")
    assert isinstance(reset, str)
    return ShareGroupConfig(
        session_timeout_ms=number("share.session.timeout.ms"),
        heartbeat_interval_ms=number("share.heartbeat.interval.ms"),
        assignment_interval_ms=number("share.assignment.interval.ms"),
        record_lock_duration_ms=number("share.record.lock.duration.ms"),
        delivery_count_limit=number("share.delivery.count.limit"),
        partition_max_record_locks=number("share.partition.max.record.locks"),
        auto_offset_reset=parse_reset(reset),
        is_read_committed=effective_value(config, overrides, "share.isolation.level") == "read_committed",
        is_renew_enabled=bool(effective_value(config, overrides, "share.renew.acknowledge.enable")),
        dead_letter_topic=str(effective_value(config, overrides, "errors.deadletterqueue.topic.name") or "")
        or None,
        copies_dead_letters=bool(
            effective_value(config, overrides, "errors.deadletterqueue.copy.record.enable")
        ),
    )


def check_broker_settings(config: TypedValues) -> None:
    """Raise ConfigError if the broker's defaults for groups contradict its limits, or each other."""
    for name, low, high in BROKER_SETTINGS.values():
        for lesser, greater, is_about_lesser in (
            (low, high, False),
            (low, name, False),
            (name, high, True),
        ):
            if lesser and greater and config.int(lesser) > config.int(greater):
                about = lesser if is_about_lesser else greater
                rule = (
                    f"less than or equal to {greater}"
                    if is_about_lesser
                    else f"greater than or equal to {lesser}"
                )
                problem = f"{about} must be {rule}"
                raise ConfigError(about, str(config.int(about)), problem, whole=True)
    for session, heartbeat in _SESSIONS_AND_HEARTBEATS:
        longer, shorter = BROKER_SETTINGS[session].default, BROKER_SETTINGS[heartbeat].default
        assert longer is not None
        assert shorter is not None
        if config.int(shorter) >= config.int(longer):
            problem = f"{shorter} must be less than {longer}"
            raise ConfigError(shorter, str(config.int(shorter)), problem, whole=True)


def consumer_group_limits(config: TypedValues) -> ConsumerGroupLimits:
    """Return the broker's settings for the consumer protocol."""
    policy = (config.str("group.consumer.migration.policy") or "").upper()
    return ConsumerGroupLimits(
        size_max=config.int("group.consumer.max.size"),
        assignors=tuple(dict.fromkeys(map(_short_name, config.list("group.consumer.assignors")))),
        may_upgrade=policy in ("UPGRADE", "BIDIRECTIONAL"),
        may_downgrade=policy in ("DOWNGRADE", "BIDIRECTIONAL"),
        regex_refresh_interval_ms=config.int("group.consumer.regex.refresh.interval.ms"),
    )


def share_group_limits(config: TypedValues) -> ShareGroupLimits:
    """Return the broker's settings for share groups."""
    config.list("group.share.assignors")  # All valid values name the same assignor.
    return ShareGroupLimits(
        size_max=config.int("group.share.max.size"),
        share_sessions_max=config.int("group.share.max.share.sessions"),
        initialize_retry_interval_ms=max(
            config.int("group.share.initialize.retry.interval.ms"), config.int("offsets.commit.timeout.ms")
        ),
        dead_letter_topic_prefix=config.str("errors.deadletterqueue.topic.name.prefix") or "",
        creates_dead_letter_topics=config.bool("errors.deadletterqueue.auto.create.topics.enable"),
    )


def _short_name(assignor: str) -> str:
    """Return the name of an assignor that is configured by its name or by the name of Kafka's class."""
    return assignor.rpartition(".")[2].removesuffix("Assignor").lower()
