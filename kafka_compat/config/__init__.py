"""Kafka's configuration: every setting with its type, default and rule, and the settings of one broker."""

from kafka_compat.config.broker_config import BrokerConfig
from kafka_compat.config.keys import ConfigError, ConfigKey, broker_keys, topic_keys
from kafka_compat.config.listeners import Listener
from kafka_compat.config.load import ConfigFileError, load
from kafka_compat.config.topic import (
    ConflictingTopicConfig,
    UnknownTopicConfig,
    check_topic_config,
    log_config,
)

__all__ = [
    "BrokerConfig",
    "ConfigError",
    "ConfigFileError",
    "ConfigKey",
    "ConflictingTopicConfig",
    "Listener",
    "UnknownTopicConfig",
    "broker_keys",
    "check_topic_config",
    "load",
    "log_config",
    "topic_keys",
]
