"""Kafka's configuration: every setting with its type, default and rule, and the settings of one broker."""

from .broker_config import BrokerConfig
from .environment import TopicToCreate
from .keys import ConfigError, ConfigKey, broker_keys, topic_keys
from .listeners import Listener
from .load import ConfigFileError, load
from .topic import ConflictingTopicConfig, UnknownTopicConfig, check_topic_config, log_config

__all__ = [
    "BrokerConfig",
    "ConfigError",
    "ConfigFileError",
    "ConfigKey",
    "ConflictingTopicConfig",
    "Listener",
    "TopicToCreate",
    "UnknownTopicConfig",
    "broker_keys",
    "check_topic_config",
    "load",
    "log_config",
    "topic_keys",
]
