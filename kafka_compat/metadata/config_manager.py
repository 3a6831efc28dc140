"""Dynamic settings of topics, brokers, groups and client metrics: DescribeConfigs, AlterConfigs and
IncrementalAlterConfigs.

Settings of topics, brokers and groups are stored under /config in the metadata store, in Kafka's format.
Responses and error codes are the same as from Apache Kafka in ZooKeeper mode, which checks broker settings as
part of the request (INVALID_REQUEST), and topic settings when it stores them (INVALID_CONFIG).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum

from kafka_compat.config import (
    BrokerConfig,
    ConfigError,
    ConflictingTopicConfig,
    UnknownTopicConfig,
    broker_keys,
    check_topic_config,
    topic_keys,
)
from kafka_compat.config.listener_config import broker_setting_has_effect
from kafka_compat.config.logger_levels import LoggerLevels
from kafka_compat.config.synonyms import (
    ConfigEntry,
    ConfigSource,
    broker_entry,
    broker_entry_names,
    default_broker_entry,
    topic_entry,
)
from kafka_compat.config.topic import DEAD_LETTERS_ENABLE
from kafka_compat.coordination.nodes import znodes
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.long_work import AT_ONCE
from kafka_compat.metadata import client_metrics, group_resources
from kafka_compat.metadata.dynamic_rules import check_dynamic, check_thread_counts, refusal, refused_by_part
from kafka_compat.metadata.dynamic_settings import DynamicSettings
from kafka_compat.metadata.feed import ConfigChange
from kafka_compat.metadata.incremental_changes import (
    Change,
    Operation,
    changed,
    check_names,
    check_no_lists,
    check_operation,
)
from kafka_compat.metadata.topic_names import check_topic_name

log = logging.getLogger(__name__)

NewSettings = Callable[[dict[str, str]], dict[str, str]]
"""A function that returns the new settings, given the stored settings."""


class ResourceType(IntEnum):
    """Types of resources that have settings. The values are Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_ALTERABLE = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


class ConfigManager:
    """The manager of dynamic settings for topics, brokers, groups and client metrics."""

    def __init__(self, settings: DynamicSettings) -> None:
        self._settings = settings
        self._config = settings.config
        self._store = settings.store
        self._metadata = settings.metadata
        self._loggers = LoggerLevels()
        self._lock = asyncio.Lock()

    async def describe(self, resource_type: int, name: str, keys: Sequence[str] | None) -> list[ConfigEntry]:
        """Return a resource's settings in `keys` (None or empty: all). Raises KafkaError if it is unknown."""
        if resource_type == ResourceType.TOPIC:
            check_topic_name(name)
            if name not in self._metadata.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return self.topic_entries(await self.topic_overrides(name), keys)
        if resource_type == ResourceType.BROKER:
            return self._describe_broker(name, keys)
        if resource_type == ResourceType.BROKER_LOGGER:
            return self._describe_loggers(name, keys)
        if resource_type == ResourceType.CLIENT_METRICS:
            return await client_metrics.described(self._store, name, keys)
        if resource_type == ResourceType.GROUP:
            return await group_resources.described(self._config, self._store, name, keys)
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource_type} for {name}")

    async def client_metrics_resources(self) -> list[str]:
        """Return the names of the client-metrics resources. Raises MetadataStoreError if the store fails."""
        return await client_metrics.names(self._store)

    async def group_resources(self) -> list[str]:
        """Return the IDs of groups that have settings. Raises MetadataStoreError if the store fails."""
        return await group_resources.names(self._store)

    def topic_entries(
        self, overrides: Mapping[str, str], keys: Sequence[str] | None = None
    ) -> list[ConfigEntry]:
        """Return the settings in `keys` (None or empty: all) for a topic with these overrides."""
        names = _chosen(topic_keys(), keys)
        if not keys and DEAD_LETTERS_ENABLE not in overrides:
            # Apache Kafka 3.9 has no such setting.
            names.remove(DEAD_LETTERS_ENABLE)
        return [topic_entry(self._config, overrides, name) for name in names]

    async def topic_overrides(self, topic: str) -> dict[str, str]:
        """Return the settings that a topic overrides. Raises KafkaError if the store fails."""
        with store_errors_mapped():
            return await self._settings.stored("topics", topic)

    def _describe_broker(self, name: str, keys: Sequence[str] | None) -> list[ConfigEntry]:
        if not name:
            names = _chosen(self._config.dynamic_default, keys)
            return [default_broker_entry(self._config, item) for item in names]
        expected = (
            f"Unexpected broker id, expected {self._config.broker_id} or empty string, but received {name}"
        )
        self._check_broker(name, "Broker id must be an integer, but it is: ", expected)
        return [broker_entry(self._config, item) for item in _chosen(broker_entry_names(self._config), keys)]

    def _describe_loggers(self, name: str, keys: Sequence[str] | None) -> list[ConfigEntry]:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        expected = f"Unexpected broker id, expected {self._config.broker_id} but received {name}"
        self._check_broker(name, "Broker id must be an integer, but it is: ", expected)
        levels = self._loggers.levels()
        return [
            ConfigEntry(item, levels[item], False, ConfigSource.DYNAMIC_BROKER_LOGGER, False, (), 0)
            for item in _chosen(levels, keys)
        ]

    async def alter(
        self,
        resource_type: int,
        name: str,
        settings: Sequence[tuple[str, str | None]],
        validate_only: bool,
        denied: KafkaError | None = None,
    ) -> None:
        """Replace all settings of a resource, for AlterConfigs. Raises KafkaError if the request is invalid.

        If the request is valid but the client is not authorized, `denied` is raised.
        """
        check_names([item for item, _ in settings], [item for item, value in settings if value is None])
        if resource_type not in _ALTERABLE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
        wanted = {item: value for item, value in settings if value is not None}
        await self._change(resource_type, name, lambda _: wanted, validate_only, denied)

    async def alter_incrementally(
        self,
        resource_type: int,
        name: str,
        changes: Sequence[Change],
        validate_only: bool,
        denied: KafkaError | None = None,
    ) -> None:
        """Change some settings of a resource, for IncrementalAlterConfigs (KIP-339). Raises KafkaError if the
        request is invalid. If it is valid but the client is not authorized, `denied` is raised.
        """
        nulls = [item.name for item in changes if item.value is None and item.operation != Operation.DELETE]
        check_names([item.name for item in changes], nulls)
        if len(changes) > AT_ONCE:
            # Yield to the event loop between the checks, which take long.
            await asyncio.sleep(0)
        if resource_type == ResourceType.BROKER_LOGGER:
            if denied is not None:
                raise denied
            self._alter_loggers(name, changes, validate_only)
            return
        if resource_type not in _ALTERABLE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
        keys = topic_keys() if resource_type == ResourceType.TOPIC else broker_keys()
        if resource_type in (ResourceType.CLIENT_METRICS, ResourceType.GROUP):
            check_no_lists(changes)
        await self._change(
            resource_type, name, lambda old: changed(old, changes, keys), validate_only, denied
        )

    async def _change(
        self,
        resource_type: int,
        name: str,
        new_settings: NewSettings,
        validate_only: bool,
        denied: KafkaError | None,
    ) -> None:
        async with self._lock:
            with store_errors_mapped():
                if resource_type == ResourceType.BROKER:
                    await self._change_broker(name, new_settings, validate_only, denied)
                elif denied is not None:
                    raise denied
                elif resource_type == ResourceType.TOPIC:
                    await self._change_topic(name, new_settings, validate_only)
                elif resource_type == ResourceType.GROUP:
                    await self._change_group(name, new_settings, validate_only)
                else:
                    await client_metrics.change(self._store, name, new_settings, validate_only)

    async def _change_topic(self, topic: str, new_settings: NewSettings, validate_only: bool) -> None:
        if not topic:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        old = await self.topic_overrides(topic)
        settings = new_settings(old)
        if topic not in self._metadata.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
        try:
            check_topic_config(self._config, settings)
        except ConfigError as error:
            raise _invalid_config("TOPIC", topic, str(error)) from error
        except (UnknownTopicConfig, ConflictingTopicConfig) as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        if validate_only:
            return
        await self._store.put(znodes.config_path("topics", topic), znodes.encode_config(settings))
        tell_of_no_effect(topic, _different(old, settings))
        self._metadata.feed.publish_config(ConfigChange(f"topics/{topic}", settings=settings, is_local=True))

    async def _change_group(self, group_id: str, new_settings: NewSettings, validate_only: bool) -> None:
        changed = await group_resources.change(
            self._config, self._store, group_id, new_settings, validate_only
        )
        if changed is not None:
            self._metadata.feed.publish_config(changed)

    async def _change_broker(
        self, name: str, new_settings: NewSettings, validate_only: bool, denied: KafkaError | None
    ) -> None:
        if name:
            expected = f"Unexpected broker id, expected {self._config.broker_id}, but received {name}"
            self._check_broker(name, "Node id must be an integer, but it is: ", expected)
        old = self._config.dynamic_broker if name else self._config.dynamic_default
        settings = new_settings(dict(old))
        check_dynamic(settings, per_broker=bool(name))
        layers = (self._config.dynamic_default, settings) if name else (settings, self._config.dynamic_broker)
        try:
            new = self._config.with_dynamic(*layers)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, refusal(error)) from error
        check_thread_counts(self._config, new)
        for check in self._settings.broker_checks:
            try:
                await check(new)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, refused_by_part(str(error))) from error
        if denied is not None:
            # As in Kafka, reject an unauthorized client only after checking the broker's settings.
            raise denied
        if any(map(_is_password, settings)):
            raise _invalid_config("BROKER", name, "Password encoder secret not configured")
        if validate_only:
            return
        if name:
            await self._check_files(name, new)
        entity = str(self._config.broker_id) if name else znodes.DEFAULT_ENTITY
        await self._store.put(znodes.config_path("brokers", entity), znodes.encode_config(settings))
        whom = f"broker {name}" if name else "all brokers"
        for item, value in _different(old, settings).items():
            if not broker_setting_has_effect(item):
                log.warning("Stored %s=%s for %s, but it has no effect in this version", item, value, whom)
        changes = self._config.set_dynamic(*layers)
        self._metadata.feed.publish_config(
            ConfigChange(f"brokers/{entity}", names=frozenset(changes), is_local=True)
        )

    async def _check_files(self, name: str, new: BrokerConfig) -> None:
        for check in self._settings.file_checks:
            try:
                await check(new)
            except ConfigError as error:
                raise _invalid_config("BROKER", name, str(error)) from error

    def _alter_loggers(self, name: str, changes: Sequence[Change], validate_only: bool) -> None:
        expected = f"Unexpected node id. Expected {self._config.broker_id}, but received {name}"
        self._check_broker(name, "Node id must be an integer, but it is: ", expected)
        levels: dict[str, str | None] = {}
        for change in changes:
            if change.operation in (Operation.APPEND, Operation.SUBTRACT):
                verb = Operation(change.operation).name
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"{verb} operation is not allowed for the BROKER_LOGGER resource",
                )
            check_operation(change)
            level = change.value if change.operation == Operation.SET else None
            self._loggers.check(change.name, level)
            levels[change.name] = level
        if not validate_only:
            self._loggers.set(levels)

    def _check_broker(self, name: str, not_a_number: str, not_this_one: str) -> None:
        try:
            broker_id = int(name)
        except ValueError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, not_a_number + name) from None
        if broker_id != self._config.broker_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, not_this_one)


def _invalid_config(kind: str, name: str, problem: str) -> KafkaError:
    about = f"Invalid config value for resource ConfigResource(type={kind}, name='{name}')"
    return KafkaError(ErrorCode.INVALID_CONFIG, f"{about}: {problem}")


def tell_of_no_effect(topic: str, settings: Mapping[str, str]) -> None:
    """Log a warning for each of a topic's settings that has no effect in this version."""
    for name, value in settings.items():
        key = topic_keys().get(name)
        if key is None or not key.has_effect:
            log.warning("Stored %s=%s for topic %s, but it has no effect in this version", name, value, topic)


def _is_password(name: str) -> bool:
    return any(name.endswith(key.name) for key in broker_keys().values() if key.sensitive)


def _chosen(names: Iterable[str], keys: Sequence[str] | None) -> list[str]:
    return [name for name in names if not keys or name in keys]


def _different(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in new.items() if old.get(name) != value}
