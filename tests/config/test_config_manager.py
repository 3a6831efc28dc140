"""Dynamic settings: responses to changes, storage, and notification of subscribers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.config import BrokerConfig, log_config
from kafka_compat.config.synonyms import ConfigSource
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.cache import MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.config_manager import ConfigManager, ResourceType
from kafka_compat.metadata.dynamic_settings import DynamicSettings
from kafka_compat.metadata.feed import MetadataDelta
from kafka_compat.metadata.incremental_changes import Change, Operation

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
SET, DELETE, APPEND, SUBTRACT = Operation


class World:
    """A broker's config manager with a real store and one topic."""

    def __init__(self, session: EmbeddedSession, static: dict[str, str]) -> None:
        self.session = session
        self.config = BrokerConfig(static)
        metadata = MetadataCache("cluster", 1)
        metadata.put_topic(TopicMetadata("t", UUID(int=1), (PartitionMetadata(0, 1, 0, (1,), (1,)),)))
        self.settings = DynamicSettings(self.config, session, metadata)
        self.manager = ConfigManager(self.settings)
        self.told: list[object] = []
        metadata.feed.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for change in delta.config_changes:
            self.told.append((change.topic, change.settings) if change.topic else set(change.names))

    async def set(self, kind: int, name: str, validate_only: bool = False, **settings: str) -> None:
        changes = [Change(key.replace("_", "."), SET, value) for key, value in settings.items()]
        await self.manager.alter_incrementally(kind, name, changes, validate_only)

    async def change(self, kind: int, name: str, key: str, operation: int, value: str | None = None) -> None:
        await self.manager.alter_incrementally(kind, name, [Change(key, operation, value)], False)

    async def value(self, kind: int, name: str, key: str) -> tuple[str | None, ConfigSource]:
        (entry,) = await self.manager.describe(kind, name, [key])
        return entry.value, entry.source


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = EmbeddedMetadataStore(str(tmp_path / "journal"))
    yield World(store.connect(), {"broker.id": "1", "num.partitions": "3"})
    await store.close()


async def test_a_topic_setting_is_stored_described_and_deleted(world: World) -> None:
    await world.set(TOPIC, "t", retention_ms="5000", flush_ms=" 20 ")
    assert world.told == [("t", {"retention.ms": "5000", "flush.ms": " 20 "})]
    assert await world.value(TOPIC, "t", "flush.ms") == ("20", ConfigSource.TOPIC)
    await world.change(TOPIC, "t", "retention.ms", DELETE)
    assert await world.value(TOPIC, "t", "retention.ms") == ("604800000", ConfigSource.DEFAULT)
    await world.manager.alter(TOPIC, "t", [("segment.bytes", "10000")], False)
    assert await world.manager.topic_overrides("t") == {"segment.bytes": "10000"}


async def test_validate_only_requests_do_not_change_settings(world: World) -> None:
    await world.set(TOPIC, "t", validate_only=True, retention_ms="5000")
    await world.set(BROKER, "1", validate_only=True, log_retention_ms="5000")
    await world.manager.alter(TOPIC, "t", [("retention.ms", "5")], True)
    assert world.told == []
    assert await world.manager.topic_overrides("t") == {}
    assert world.config.dynamic_broker == {}
    with pytest.raises(KafkaError, match="Not a number"):
        await world.set(TOPIC, "t", validate_only=True, retention_ms="many")


async def test_list_settings_can_be_appended_to_and_subtracted_from(world: World) -> None:
    async def policy() -> str | None:
        return (await world.value(TOPIC, "t", "cleanup.policy"))[0]

    await world.change(TOPIC, "t", "cleanup.policy", APPEND, "compact")
    assert await policy() == "delete,compact"
    await world.change(TOPIC, "t", "cleanup.policy", APPEND, "compact,delete")
    assert await policy() == "delete,compact"
    await world.change(TOPIC, "t", "cleanup.policy", SUBTRACT, "delete")
    assert await policy() == "compact"


@pytest.mark.parametrize(
    ("kind", "name", "change", "code", "message"),
    [
        (
            TOPIC,
            "t",
            Change("retention.ms", SET, "x"),
            ErrorCode.INVALID_CONFIG,
            "name='t'): Invalid value x for",
        ),
        (
            TOPIC,
            "t",
            Change("no.such", SET, "1"),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        ),
        (TOPIC, "t", Change("no.such", APPEND, "1"), ErrorCode.INVALID_CONFIG, "Unknown config name"),
        (TOPIC, "t", Change("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG, "append is not allowed"),
        (
            TOPIC,
            "t",
            Change("retention.ms", SET, None),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported",
        ),
        (TOPIC, "t", Change("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (
            TOPIC,
            "u",
            Change("retention.ms", SET, "1"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "does not exist",
        ),
        (TOPIC, "", Change("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "Default topic resources"),
        (
            BROKER,
            "2",
            Change("log.retention.ms", SET, "1"),
            ErrorCode.INVALID_REQUEST,
            "expected 1, but received 2",
        ),
        (BROKER, "x", Change("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "must be an integer"),
        (
            BROKER,
            "1",
            Change("broker.id", SET, "2"),
            ErrorCode.INVALID_REQUEST,
            "dynamically: Set(broker.id)",
        ),
        (
            BROKER,
            "1",
            Change("log.retention.ms", SET, "x"),
            ErrorCode.INVALID_REQUEST,
            "Not a number of type LONG",
        ),
        (BROKER, "1", Change("log.retention.ms", SET, "0"), ErrorCode.INVALID_REQUEST, "unlimited (-1)"),
        (
            BROKER,
            "",
            Change("listeners", SET, "A://:1"),
            ErrorCode.INVALID_REQUEST,
            "broker id must be specified",
        ),
        (BROKER, "1", Change("ssl.key.password", SET, "s"), ErrorCode.INVALID_REQUEST, "per-listener"),
        (
            BROKER,
            "1",
            Change("listener.name.a.ssl.key.password", SET, "secret"),
            ErrorCode.INVALID_CONFIG,
            "Password encoder secret not configured",
        ),
        (LOGGER, "1", Change("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG, "Valid log levels are DEBUG"),
        (LOGGER, "1", Change("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG, "does not exist"),
        (LOGGER, "1", Change("root", DELETE, None), ErrorCode.INVALID_REQUEST, "root logger"),
        (LOGGER, "1", Change("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST, "APPEND operation"),
        (3, "x", Change("a", SET, "1"), ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
        (16, "x", Change("a", SET, "1"), ErrorCode.INVALID_REQUEST, "Unknown client metrics"),
    ],
)
async def test_invalid_changes_fail_with_kafkas_errors_and_have_no_effect(
    world: World, kind: int, name: str, change: Change, code: ErrorCode, message: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        await world.manager.alter_incrementally(kind, name, [change], False)
    assert refused.value.code == code
    assert message in refused.value.message
    assert world.told == []
    assert await world.manager.topic_overrides("t") == {}
    assert world.config.dynamic_broker == world.config.dynamic_default == {}


async def test_a_setting_can_be_changed_only_once_per_request(world: World) -> None:
    twice = [Change("retention.ms", SET, "1"), Change("retention.ms", SET, "2")]
    with pytest.raises(KafkaError, match="duplicate config keys"):
        await world.manager.alter_incrementally(TOPIC, "t", twice, False)
    with pytest.raises(KafkaError, match=r"Null value not supported for : retention\.ms, flush\.ms"):
        await world.manager.alter(TOPIC, "t", [("retention.ms", None), ("flush.ms", None)], False)


async def test_broker_settings_from_every_source_apply_to_topics(world: World) -> None:
    await world.set(BROKER, "", log_retention_ms="50000")
    assert await world.value(TOPIC, "t", "retention.ms") == ("50000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    await world.set(BROKER, "1", log_retention_ms="60000")
    (entry,) = await world.manager.describe(TOPIC, "t", ["retention.ms"])
    assert [tuple(place) for place in entry.synonyms] == [
        ("log.retention.ms", "60000", ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", "50000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    assert log_config(world.config, {}).retention_ms == 60000
    assert world.told == [{"log.retention.ms"}, {"log.retention.ms"}]
    assert await world.value(BROKER, "", "log.retention.ms") == ("50000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert await world.value(BROKER, "1", "num.partitions") == ("3", ConfigSource.STATIC_BROKER)


async def test_a_restarted_broker_applies_its_stored_settings(world: World) -> None:
    await world.set(BROKER, "", log_retention_ms="50000")
    await world.set(BROKER, "1", message_max_bytes="9999", my_own="secret")
    again = World(world.session, {"broker.id": "1", "log.retention.ms": "7"})
    await again.settings.load()
    assert log_config(again.config, {}).retention_ms == 50000
    assert again.config.int("message.max.bytes") == 9999
    (entry,) = await again.manager.describe(BROKER, "1", ["my.own"])
    assert (entry.value, entry.is_sensitive) == (None, True), "unknown settings are treated as sensitive"


async def test_an_invalid_stored_setting_is_ignored_and_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.session.put(
        "/config/brokers/1", b'{"version":1,"config":{"log.retention.ms":"x","num.io.threads":"9"}}'
    )
    await world.settings.load()
    assert world.config.dynamic_broker == {"num.io.threads": "9"}
    assert "log.retention.ms" in caplog.text


async def test_a_setting_without_effect_is_stored_and_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.set(TOPIC, "t", preallocate="true", retention_ms="5000")
    assert await world.value(TOPIC, "t", "preallocate") == ("true", ConfigSource.TOPIC)
    assert "preallocate=true for topic t" in caplog.text
    assert "retention.ms" not in caplog.text


async def test_logger_levels_can_be_changed_and_fall_back_to_the_parents_level(world: World) -> None:
    logger = logging.getLogger("kafka_compat.metadata.config_manager")
    before = logger.level
    try:
        await world.change(LOGGER, "1", logger.name, SET, "DEBUG")
        assert logger.getEffectiveLevel() == logging.DEBUG
        assert await world.value(LOGGER, "1", logger.name) == ("DEBUG", ConfigSource.DYNAMIC_BROKER_LOGGER)
        await world.change(LOGGER, "1", logger.name, DELETE)
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(before)


async def test_unknown_resources_are_not_described(world: World) -> None:
    for kind, name, code in (
        (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
    ):
        with pytest.raises(KafkaError) as refused:
            await world.manager.describe(kind, name, None)
        assert refused.value.code == code


async def test_secrets_are_never_described(world: World) -> None:
    world = World(
        world.session, {"broker.id": "1", "ssl.keystore.password": "hunter2", "their.password": "hunter2"}
    )
    for entry in await world.manager.describe(BROKER, "1", None):
        assert "hunter2" not in str(entry)
