"""Topic-level settings in memory, and the resulting log configuration. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_compat.config import BrokerConfig, log_config
from kafka_compat.config.topic import DEAD_LETTERS_ENABLE
from kafka_compat.metadata import topic_rules

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import PartitionMetadata
    from kafka_compat.storage.config import LogConfig

_NONE: Mapping[str, str] = {}
_LOG_CONFIGS_MAX = 1000


class TopicOverrides:
    """The topic-level settings that this broker knows."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._overriding: dict[str, set[str]] = {}
        """Maps each setting to the topics that override it."""
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        """Log configurations shared by topics with the same settings. Most topics have no overrides."""
        self._revision = -1

    def __contains__(self, topic: str) -> bool:
        """Return whether the topic's overrides are known, even if it has none."""
        return topic in self._overrides

    def of(self, topic: str) -> Mapping[str, str]:
        """Return the settings that the topic overrides."""
        return self._overrides.get(topic, _NONE)

    def put(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Replace the settings that the topic overrides."""
        self.forget(topic)
        self._overrides[topic] = dict(overrides) if overrides else _NONE
        for name in overrides:
            self._overriding.setdefault(name, set()).add(topic)

    def forget(self, topic: str) -> None:
        """Forget the settings of a topic."""
        for name in self._overrides.pop(topic, _NONE):
            self._overriding[name].discard(topic)

    def topics_with(self, setting: str) -> list[str]:
        """Return the topics that override this setting."""
        return list(self._overriding.get(setting, ()))

    @property
    def defaults(self) -> LogConfig:
        """The log settings of topics without overrides."""
        return self._log_config(_NONE)

    def log_config(self, topic: str) -> LogConfig:
        """Return a topic's log settings: its overrides, then the broker's settings, then Kafka's defaults."""
        overrides = self._overrides.get(topic)
        if overrides is None:
            overrides = topic_rules.internal_configs(self._config, topic)
        return self._log_config(overrides)

    def _log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        if self._revision != self._config.revision or len(self._log_configs) >= _LOG_CONFIGS_MAX:
            self._revision = self._config.revision
            self._log_configs.clear()
        items = frozenset(overrides.items())
        config = self._log_configs.get(items)
        if config is None:
            config = self._log_configs[items] = log_config(self._config, overrides)
        return config

    def accepts_dead_letters(self, topic: str) -> bool:
        """Return whether share groups may write dead letters to the topic."""
        return self.of(topic).get(DEAD_LETTERS_ENABLE, "").lower() == "true"

    def min_insync_replicas(self, topic: str) -> int:
        """Return the topic's min.insync.replicas, or the broker's default."""
        text = self.of(topic).get("min.insync.replicas")
        # Ignore an invalid value, as `log_config` does: an older version may have stored it.
        return int(text) if text is not None and text.isdecimal() else self._config.int("min.insync.replicas")

    def min_isr(self, topic: str, partition: PartitionMetadata) -> int:
        """Return the effective min.insync.replicas: at most the number of replicas, as in Kafka."""
        return min(self.min_insync_replicas(topic), len(partition.replicas))
