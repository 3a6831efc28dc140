"""Sources of a setting's value, in order of precedence, as returned by DescribeConfigs."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from kafka_compat.config.broker_config import UNIT_GROUPS, BrokerConfig
from kafka_compat.config.group import BROKER_SETTINGS, group_keys
from kafka_compat.config.keys import ConfigKey, broker_keys, dynamic_only_keys, topic_keys
from kafka_compat.config.quorum_names import AUTO_JOIN
from kafka_compat.config.topic import server_default
from kafka_compat.config.topic_table import SERVER_SYNONYMS


class ConfigSource(IntEnum):
    """Kafka's numbers for the sources of settings."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


_OF_LISTENER = r"listener\.name\.[^.]+\.(.+)"

_TYPES = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}

#: Groups of synonymous settings. Within a group, the first setting that is set takes precedence.
_BROKER_SYNONYMS = (*UNIT_GROUPS, ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"))


class Synonym(NamedTuple):
    """A source of a value, with the setting's name and value in that source."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting, as returned by DescribeConfigs. `type` is Kafka's type number, or 0 if unknown. Sensitive
    values are None.
    """

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: int
    about: str | None = None
    """The setting's documentation, if the module `documentation` does not contain it."""


def type_number(key: ConfigKey) -> int:
    """Return Kafka's number for the type of a setting, as used in DescribeConfigs."""
    return _TYPES[key.type]


def topic_entry(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> ConfigEntry:
    """Return the DescribeConfigs entry for a topic setting, with the topic's override or the default."""
    key = topic_keys()[name]
    value = key.show(key.parse(overrides[name]) if name in overrides else server_default(config, name))
    synonyms: tuple[Synonym, ...] = ()
    if name in SERVER_SYNONYMS:
        synonyms = _places(config, SERVER_SYNONYMS[name][0], sensitive=False)
    if name in overrides:
        synonyms = (Synonym(name, value, ConfigSource.TOPIC), *synonyms)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(name, value, False, source, False, synonyms, _TYPES[key.type])


def group_entry(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> ConfigEntry:
    """Return the DescribeConfigs entry for a group setting, with the group's override or the default."""
    key, default = group_keys()[name], BROKER_SETTINGS[name].default
    synonyms: tuple[Synonym, ...] = (Synonym(name, key.default, ConfigSource.DEFAULT),)
    if default is not None:
        synonyms = _places(config, default, sensitive=False)
    if name in overrides:
        synonyms = (Synonym(name, key.show(key.parse(overrides[name])), ConfigSource.GROUP), *synonyms)
    value, source = synonyms[0].value, synonyms[0].source
    return ConfigEntry(name, value, False, source, False, synonyms, _TYPES[key.type])


def broker_entry(config: BrokerConfig, name: str) -> ConfigEntry:
    """Return a broker setting's DescribeConfigs entry, without the value if it is or may be secret."""
    key = known_key(name)
    synonyms = _places(config, name, sensitive=key is None or key.sensitive)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if key is None:
        return ConfigEntry(name, None, True, source, True, synonyms, 0)
    if name not in broker_keys():
        value = synonyms[0].value if synonyms else key.default
        return ConfigEntry(name, value, True, source, key.sensitive, synonyms, _TYPES[key.type])
    shown = None if key.sensitive else key.show(config.get(name))
    return ConfigEntry(name, shown, key.read_only, source, key.sensitive, synonyms, _TYPES[key.type])


def default_broker_entry(config: BrokerConfig, name: str) -> ConfigEntry:
    """Return the DescribeConfigs entry for a cluster-wide dynamic broker setting."""
    key = known_key(name)
    sensitive = key is None or key.sensitive
    value = None if sensitive else config.dynamic_default[name]
    synonym = Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    read_only = key is None or key.read_only or name in dynamic_only_keys()
    return ConfigEntry(
        name, value, read_only, synonym.source, sensitive, (synonym,), _TYPES[key.type] if key else 0
    )


def broker_entry_names(config: BrokerConfig) -> list[str]:
    """Return the names in DescribeConfigs: all non-internal broker settings, and other configured names. Only
    nodes of a quorum report the setting that Kafka 4.2 added.
    """
    names = [
        name
        for name, key in broker_keys().items()
        if key.update != "internal" or (name == AUTO_JOIN and config.quorum is not None)
    ]
    given = {**config.static, **config.dynamic_default, **config.dynamic_broker}
    return names + [name for name in given if name not in broker_keys()]


def known_key(name: str) -> ConfigKey | None:
    """Return a broker setting's definition (also for listener.name.L.X), or None if it is unknown."""
    of_listener = re.fullmatch(_OF_LISTENER, name)
    return broker_keys().get(of_listener[1] if of_listener else name) or dynamic_only_keys().get(name)


def _places(config: BrokerConfig, name: str, *, sensitive: bool) -> tuple[Synonym, ...]:
    names = next((group for group in _BROKER_SYNONYMS if name in group), (name,))
    keys = broker_keys()
    defaults = {item: keys[item].default for item in names if item in keys}
    places: list[Synonym] = []
    for source, values in (
        (ConfigSource.DYNAMIC_BROKER, config.dynamic_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, config.dynamic_default),
        (ConfigSource.STATIC_BROKER, config.static),
        (ConfigSource.DEFAULT, defaults),
    ):
        for item in names:
            value = values.get(item)
            if value is not None:
                places.append(Synonym(item, None if sensitive else value, source))
    # Start with the source that uses the requested name, because Kafka omits the earlier sources.
    first = next((index for index, place in enumerate(places) if place.name == name), len(places))
    return tuple(places[first:])
