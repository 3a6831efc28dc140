"""Topic settings: validation, and the log configuration derived from them and the broker's settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from kafka_compat.config.broker_config import UNIT_GROUPS, BrokerConfig
from kafka_compat.config.keys import ConfigError, Value, topic_keys
from kafka_compat.config.topic_table import SERVER_SYNONYMS

if TYPE_CHECKING:
    from kafka_compat.storage.config import LogConfig

DEAD_LETTERS_ENABLE: Final = "errors.deadletterqueue.group.enable"
"""Whether share groups may write dead letters to the topic."""
_LONG_MAX = 2**63 - 1
_LEVEL_SETTINGS = {
    "gzip": "compression.gzip.level",
    "lz4": "compression.lz4.level",
    "zstd": "compression.zstd.level",
}
_GROUP_HEADS = {group[0] for group in UNIT_GROUPS}


class UnknownTopicConfig(Exception):
    """Raised for an unknown topic setting."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown topic config name: {name}")
        self.name = name


class ConflictingTopicConfig(Exception):
    """Raised for topic settings that conflict, or that this broker does not support."""


def server_default(config: BrokerConfig, name: str) -> Value:
    """Return the default of a topic setting: the broker's value or, if it has none, Kafka's default."""
    synonyms = SERVER_SYNONYMS.get(name)
    if synonyms is None:
        key = topic_keys()[name]
        return None if key.default is None else key.parse(key.default)
    if synonyms[0] in _GROUP_HEADS:
        return config.duration_ms(synonyms[0])
    return next((value for value in map(config.get, synonyms) if value is not None), None)


def topic_values(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return all settings of a topic with these overrides. Raises ConfigError if a value is invalid, and
    UnknownTopicConfig if a name is unknown.
    """
    keys = topic_keys()
    for name in overrides:
        if name not in keys:
            raise UnknownTopicConfig(name)
    return {
        name: key.parse(overrides[name]) if name in overrides else server_default(config, name)
        for name, key in keys.items()
    }


def check_topic_config(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError, UnknownTopicConfig or ConflictingTopicConfig if the overrides are invalid."""
    values = topic_values(config, overrides)
    low, high = cast(int, values["min.compaction.lag.ms"]), cast(int, values["max.compaction.lag.ms"])
    if low > high:
        raise ConflictingTopicConfig(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
    if values["remote.log.delete.on.disable"] or values["remote.log.copy.disable"]:
        raise ConflictingTopicConfig(
            "It is invalid to set `remote.log.delete.on.disable` or "
            "`remote.log.copy.disable` under Zookeeper's mode."
        )
    if values["remote.storage.enable"]:
        raise ConfigError(
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
            "expected false",
            whole=True,
        )


def log_config(config: BrokerConfig, overrides: Mapping[str, str]) -> "LogConfig":
    """Return the configuration of a topic's logs, ignoring invalid overrides stored by an older version."""
    from kafka_compat.storage.config import LogConfig

    keys = topic_keys()
    values: dict[str, Value] = {}
    for name in keys:
        if name in overrides:
            try:
                values[name] = keys[name].parse(overrides[name])
                continue
            except ConfigError:
                pass
        values[name] = server_default(config, name)
    # message.timestamp.difference.max.ms replaces each of the newer settings that has no limit (KIP-937).
    difference = cast(int, values["message.timestamp.difference.max.ms"])
    before, after = (cast(int, values[f"message.timestamp.{bound}.max.ms"]) for bound in ("before", "after"))

    codec = cast(str, values["compression.type"])

    def number(name: str) -> int:
        return cast(int, values[name])

    return LogConfig(
        segment_bytes=number("segment.bytes"),
        segment_ms=number("segment.ms"),
        segment_jitter_ms=number("segment.jitter.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        cleanup_policy=frozenset(cast("list[str]", values["cleanup.policy"])),
        file_delete_delay_ms=number("file.delete.delay.ms"),
        delete_retention_ms=number("delete.retention.ms"),
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        max_compaction_lag_ms=number("max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=cast(float, values["min.cleanable.dirty.ratio"]),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        max_message_bytes=number("max.message.bytes"),
        message_timestamp_type=cast(str, values["message.timestamp.type"]),
        message_timestamp_before_max_ms=difference if before == _LONG_MAX else before,
        message_timestamp_after_max_ms=difference if after == _LONG_MAX else after,
        compression_type=codec,
        compression_level=number(_LEVEL_SETTINGS[codec]) if codec in _LEVEL_SETTINGS else None,
        message_downconversion_enable=bool(values["message.downconversion.enable"]),
        validate_records=config.bool("kafka.compat.record.validation.enable"),
        producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
    )
