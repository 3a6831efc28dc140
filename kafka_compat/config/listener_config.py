"""Settings of one listener: `listener.name.<name>.X` takes precedence over `X` (KIP-103, KIP-226)."""

import re
from typing import Protocol

from kafka_compat.config.keys import ConfigKey, TypedValues, Value, broker_keys, dynamic_only_keys

PREFIX = "listener.name."

# A setting of one listener, and optionally of one SASL mechanism, such as listener.name.inside.plain.sasl.X.
_NAME = re.compile(r"listener\.name\.(?P<listener>[^.]+)\.(?P<setting>(?:[^.]+\.)?(?P<rest>.+))")


def listener_key(name: str) -> ConfigKey | None:
    """Return the definition of `listener.name.L.X`, or of `listener.name.L.M.X` for a SASL mechanism M, with
    the full name as its name. Return None if the setting is unknown.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    keys = broker_keys()
    key = keys.get(match["setting"]) or keys.get(match["rest"])
    return key and key._replace(name=name)


def broker_setting_has_effect(name: str) -> bool:
    """Return whether this broker applies a broker setting, or does not need it."""
    if name.startswith(PREFIX):
        key = listener_key(name)
        return key is not None and key.effect == "listener"
    key = broker_keys().get(name) or dynamic_only_keys().get(name)
    return key is not None and key.has_effect


def with_right_case(name: str) -> str:
    """Return a setting's name as Kafka looks it up, with the listener name in lower case."""
    match = _NAME.fullmatch(name)
    return f"{PREFIX}{match['listener'].lower()}.{match['setting']}" if match else name


class _Settings(Protocol):
    """The methods of a BrokerConfig that a ListenerConfig needs."""

    def get(self, name: str) -> Value: ...

    def is_set(self, name: str) -> bool: ...


class ListenerConfig(TypedValues):
    """The settings of one listener in a `BrokerConfig`. Calls return the current values."""

    def __init__(self, config: _Settings, listener_name: str) -> None:
        self._config = config
        self._values = {}
        self.listener_name = listener_name
        self._prefix = f"{PREFIX}{listener_name.lower()}."

    def is_own(self, name: str) -> bool:
        """Return whether a value was set specifically for this listener. `name` may begin with a SASL
        mechanism, as in `scram-sha-512.sasl.jaas.config`.
        """
        return self._config.is_set(self._prefix + name)

    def named(self, name: str) -> str:
        """Return the full name of the setting that provides the value: the listener's or the broker's."""
        return self._prefix + name if self.is_own(name) else name

    def get(self, name: str) -> Value:
        """Return the effective value. Raises KeyError if the setting is unknown."""
        return self._config.get(self.named(name))
