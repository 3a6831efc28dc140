"""The settings of one broker: static settings, overridden by dynamic settings from AlterConfigs (KIP-226)."""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, cast

from kafka_compat.config.authorizer import OWN as AUTHORIZER_SETTINGS
from kafka_compat.config.authorizer import AuthorizerSettings, authorizer_settings
from kafka_compat.config.keys import (
    ConfigError,
    ConfigKey,
    TypedValues,
    Value,
    broker_keys,
    dynamic_only_keys,
)
from kafka_compat.config.listener_config import (
    PREFIX,
    ListenerConfig,
    broker_setting_has_effect,
    listener_key,
    with_right_case,
)
from kafka_compat.config.listeners import (
    PUBLISHED,
    Listener,
    check_advertised,
    check_bound,
    parse_listeners,
    parse_protocol_map,
    with_host_name,
)
from kafka_compat.config.own_settings import default_log_dir
from kafka_compat.config.quorum_names import (
    LISTENER_NAMES,
    controller_names,
    implied_protocols,
    is_of_quorum,
    wants_quorum,
)

if TYPE_CHECKING:
    from kafka_compat.config.environment import TopicToCreate
    from kafka_compat.config.inter_broker_protocol import InterBrokerProtocol
    from kafka_compat.config.quorum import QuorumConfig

#: Groups of settings for one value in different units, each in order of precedence. A dynamic setting of a
#: group overrides all static ones: a dynamic log.retention.hours overrides a static log.retention.ms.
UNIT_GROUPS: tuple[tuple[str, ...], ...] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_CLEANER_BYTES = 1024 * 1024
_GROUP_PREFIXES = ("group.consumer.", "group.share.")

_UNIT_MS = {"ms": 1, "minutes": 60_000, "hours": 3_600_000}

#: Prefix of the settings that connect Kafka's AclAuthorizer to a separate ZooKeeper ensemble.
_OF_ITS_STORE = "authorizer.zookeeper."

#: Prefixes of settings introduced after Kafka 3.9. These settings are not in the table.
_NEWER_PREFIXES = (
    "group.streams.",
    "controller.quorum.fetch.max.",
    "controller.quorum.fetch.snapshot.",
)


class BrokerConfig(TypedValues):
    """The settings of one broker, by Kafka's names.

    `int("num.partitions")` and similar calls return the effective value as fast as a dictionary lookup.
    Values in `dynamic_broker` (this broker) override those in `dynamic_default` (all brokers of the cluster),
    which override those in `static` (files, environment, command line).
    """

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static = dict(static)
        # broker.id and node.id are synonyms, as defined by KIP-500.
        for name, synonym in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if synonym in self.static:
                self.static.setdefault(name, self.static[synonym])
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self.revision = 0
        """Number that increases when dynamic values change."""
        self.create_topics: tuple[TopicToCreate, ...] = ()
        self.cluster_id: str | None = None
        """The cluster ID in the variable CLUSTER_ID of container images, or None."""
        self.quorum: QuorumConfig | None = None
        """The settings of a node of a quorum, or None for a standalone broker or a cluster with ZooKeeper."""
        self.ambiguous: tuple[str, ...] = ()
        """The locations of settings whose values would differ if their file were decoded as UTF-8."""
        self._keys = broker_keys()
        self.unknown = tuple(name for name in self.static if name not in self._keys and not _is_built(name))
        self.ignored_kraft: tuple[str, ...] = ()
        """The settings of a quorum, if this broker belongs to none."""
        if not wants_quorum(self.static):
            self.ignored_kraft = tuple(name for name in self.static if is_of_quorum(name))
        self._values: dict[str, Value] = self._parse(self.static)
        self._check()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "BrokerConfig":
        """Return the configuration with these properties. Raises ConfigError if a value is invalid."""
        return cls(properties)

    def get(self, name: str) -> Value:
        """Return the effective value. Raises KeyError if the name is unknown."""
        try:
            return self._values[name]
        except KeyError:
            key = self._keys.get(name) or dynamic_only_keys()[name]
            value = None if key.default is None else key.parse(key.default)
            self._values[name] = value
            return value

    def is_set(self, name: str) -> bool:
        """Return whether a value was configured, rather than being a default of Kafka or kafka-compat."""
        return name in self.static or name in self.dynamic_default or name in self.dynamic_broker

    def for_listener(self, listener_name: str) -> ListenerConfig:
        """Return the settings of one listener."""
        return ListenerConfig(self, listener_name)

    def unknown_with_guess(self, name: str) -> str:
        """Return the name of an unknown setting, followed by a suggestion if a known name is similar."""
        import difflib

        if with_right_case(name) != name:
            return f"{name} (did you mean {with_right_case(name)}?)"
        likely = difflib.get_close_matches(
            name, [*self._keys, *dynamic_only_keys(), *AUTHORIZER_SETTINGS], 1, 0.8
        )
        return f"{name} (did you mean {likely[0]}?)" if likely else name

    @property
    def without_effect(self) -> list[str]:
        """Return the configured settings that have no effect in this version, except those for KRaft."""
        return [
            name
            for name, value in self.static.items()
            if name.startswith(_NEWER_PREFIXES)
            or (
                (name in self._keys or listener_key(name) is not None)
                and name not in self.ignored_kraft
                and not broker_setting_has_effect(name)
            )
            or (name in AUTHORIZER_SETTINGS and self.authorizer is None)
            or (name.startswith(_OF_ITS_STORE) and name not in AUTHORIZER_SETTINGS)
        ]

    @property
    def broker_id(self) -> int:
        """This broker's ID. If broker.id is -1, this is the first ID that Kafka would generate."""
        configured = self.int("broker.id")
        return configured if configured >= 0 else self.int("reserved.broker.max.id") + 1

    @property
    def has_broker_id(self) -> bool:
        """Whether a broker ID was configured, or taken from the log directories."""
        return self.is_set("broker.id") and self.int("broker.id") >= 0

    def adopt_broker_id(self, broker_id: int) -> None:
        """Set the broker ID to the ID stored in the log directories, because no ID was configured."""
        for name in ("broker.id", "node.id"):
            self.static[name] = str(broker_id)
            self._values[name] = broker_id

    @property
    def log_dirs(self) -> list[str]:
        """The absolute paths of the log directories, at least one."""
        # As in Kafka, an empty value counts as set. It usually comes from an undefined template variable.
        text = self.str("log.dir" if self.str("log.dirs") is None else "log.dirs") or ""
        return [os.path.abspath(os.path.expanduser(item.strip())) for item in text.split(",") if item.strip()]

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        """The addresses to bind for clients and brokers. Controller listeners are in `quorum`."""
        return self._without_controllers(self._bound)

    @cached_property
    def advertised_listeners(self) -> dict[str, tuple[str, int]]:
        """Maps listener names to the host and port advertised to clients. For a missing listener, a client
        gets the address to which it connected (Kafka would advertise its own host name).
        """
        found = self._without_controllers(self._advertised)
        check_advertised(found, self.listeners, self.str("advertised.listeners") or "")
        return {listener.name: (listener.host, listener.port) for listener in found}

    @cached_property
    def published_listeners(self) -> dict[str, tuple[str, int]]:
        """Maps listener names to the host and port that clients outside the broker's networks receive. Does
        not contain the advertised listeners.
        """
        text = self.str(PUBLISHED) or ""
        found = self._without_controllers(parse_listeners(PUBLISHED, text, self._protocols))
        check_advertised(found, self.listeners, text, PUBLISHED)
        advertised = self.advertised_listeners
        return {each.name: (each.host, each.port) for each in found if each.name not in advertised}

    def _without_controllers(self, listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
        controllers = controller_names(self.str(LISTENER_NAMES))
        return tuple(listener for listener in listeners if listener.name not in controllers)

    @cached_property
    def _bound(self) -> tuple[Listener, ...]:
        return parse_listeners("listeners", self.str("listeners") or "", self._protocols)

    @cached_property
    def _advertised(self) -> tuple[Listener, ...]:
        text = self.str("advertised.listeners") or ""
        found = parse_listeners("advertised.listeners", text, self._protocols)
        return with_host_name(found) if wants_quorum(self.static) else found

    @cached_property
    def authorizer(self) -> AuthorizerSettings | None:
        """The authorizer's settings, or None if every request is allowed."""
        return authorizer_settings(self.static)

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener for traffic between brokers. It is set by inter.broker.listener.name or
        security.inter.broker.protocol. The default is the first listener.
        """
        name = self.str("inter.broker.listener.name")
        if not name and self.is_set("security.inter.broker.protocol"):
            name = self.str("security.inter.broker.protocol")
        return name.upper() if name else self.listeners[0].name

    @property
    def inter_broker_security_protocol(self) -> str:
        name = self.inter_broker_listener
        return next(listener.security_protocol for listener in self.listeners if listener.name == name)

    @property
    def delegation_token_key(self) -> str | None:
        """The key that signs delegation tokens, or None if tokens are disabled. It is read from the setting
        with the current name or the former name.
        """
        key = self.str("delegation.token.secret.key")
        return (self.str("delegation.token.master.key") if key is None else key) or None

    @cached_property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """max.connections.per.ip.overrides (`host:limit,…`): maps hosts to limits."""
        text = self.str("max.connections.per.ip.overrides") or ""
        overrides = {}
        for item in filter(None, (item.strip() for item in text.split(","))):
            host, _, limit = item.rpartition(":")
            if not host or not limit.strip().isdigit():
                raise ConfigError(
                    "max.connections.per.ip.overrides",
                    text,
                    f"{item} is not HOST:LIMIT",
                    "expected 10.0.0.7:20,…",
                )
            overrides[host.strip().strip("[]")] = int(limit)
        return overrides

    def duration_ms(self, name: str) -> int:
        """Return a duration that can be configured in several units. `name` is the setting in milliseconds:
        log.retention.ms, log.roll.ms or log.roll.jitter.ms. Returns -1 (unlimited) for any negative value.
        """
        group = next(group for group in UNIT_GROUPS if group[0] == name)
        for synonym in group:
            value = self.get(synonym)
            if value is not None:
                return max(-1, cast(int, value) * _UNIT_MS[synonym.rpartition(".")[2]])
        raise AssertionError(f"{group[-1]} has a default")

    def internal_replication_factor(self, name: str, brokers: int) -> int:
        """Return offsets.topic.replication.factor or a similar setting, limited to the number of brokers. A
        single broker can therefore serve groups without configuration (Kafka waits until a third broker
        joins).
        """
        return max(1, min(self.int(name), brokers))

    def key(self, name: str) -> ConfigKey | None:
        """Return the definition of a broker setting, or None for an unknown name."""
        return self._keys.get(name)

    def set_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> set[str]:
        """Replace the cluster-wide and per-broker dynamic settings. Return the names of settings whose values
        changed. If a setting or combination of settings is invalid, change nothing and raise ConfigError.
        """
        if default == self.dynamic_default and broker == self.dynamic_broker:
            # Comparing all values is slow, and the dynamic settings are usually unchanged at startup.
            return set()
        new = self.with_dynamic(default, broker)
        changed = {name for name in self._keys if self.get(name) != new.get(name)}
        of_listeners = {name for name in (*self._values, *new._values) if name.startswith(PREFIX)}
        changed |= {name for name in of_listeners if self._values.get(name) != new._values.get(name)}
        self.dynamic_default, self.dynamic_broker = dict(default), dict(broker)
        self._values = new._values
        self.revision += 1
        self.__dict__.pop("connections_per_ip_overrides", None)
        return changed

    def with_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> "BrokerConfig":
        """Return a configuration with these dynamic settings. Raises ConfigError if they are invalid."""
        texts = dict(self.static)
        for layer in (default, broker):
            for name, text in layer.items():
                for group in UNIT_GROUPS:
                    if name in group:
                        for synonym in group:
                            texts.pop(synonym, None)
                texts[name] = text
        return BrokerConfig(texts)

    @cached_property
    def _protocols(self) -> dict[str, str]:
        protocols = parse_protocol_map(self._keys["listener.security.protocol.map"].default or "")
        if self.is_set("listener.security.protocol.map"):
            protocols = parse_protocol_map(self.str("listener.security.protocol.map") or "")
        controllers = controller_names(self.str(LISTENER_NAMES))
        if wants_quorum(self.static):
            return {**implied_protocols(self.static, controllers), **protocols}
        return {**dict.fromkeys(controllers, "PLAINTEXT"), **protocols}

    def _parse(self, texts: Mapping[str, str]) -> dict[str, Value]:
        others = dynamic_only_keys()
        values: dict[str, Value] = {}
        for name, text in texts.items():
            key = self._keys.get(name) or others.get(name) or listener_key(name)
            if key and (name not in self.ignored_kraft or name == LISTENER_NAMES):
                values[name] = key.parse(text)
        return values

    @property
    def session_timeout_ms(self) -> int:
        """The time in ms without contact after which the metadata store ends the broker's session."""
        if self.quorum is not None:
            return self.quorum.session_timeout_ms
        return self.int("zookeeper.session.timeout.ms")

    @cached_property
    def inter_broker_protocol(self) -> "InterBrokerProtocol":
        """The protocol of requests between brokers, and of nodes in ZooKeeper: that of
        inter.broker.protocol.version with ZooKeeper, otherwise that of Kafka 3.9. Raises ConfigError if the
        version is not supported.
        """
        # Imported here because a standalone broker does not need it.
        from kafka_compat.config.inter_broker_protocol import LATEST, SETTING, inter_broker_protocol

        if self.quorum is not None or not self.str("zookeeper.connect"):
            return LATEST
        return inter_broker_protocol(self.str(SETTING) or "")

    def _check(self) -> None:
        """Raise ConfigError if a rule that involves several settings is violated."""
        if not self.log_dirs:
            setting = "log.dir" if self.str("log.dirs") is None else "log.dirs"
            raise ConfigError(
                setting,
                self.str(setting),
                "At least one log directory must be defined via log.dirs or log.dir",
                f"expected one or more paths, separated by commas; the default is {default_log_dir()}",
            )
        check_bound(self._bound, self.str("listeners") or "")
        if wants_quorum(self.static):
            # Imported here because a standalone broker does not need it at startup.
            from kafka_compat.config.quorum import quorum_config

            self.quorum = quorum_config(
                self, self.static, self.log_dirs[0], self._bound, self._advertised, self._protocols
            )
            if not self.quorum.is_broker:
                return
        _ = (
            self.advertised_listeners,
            self.published_listeners,
            self.connections_per_ip_overrides,
            self.authorizer,
        )
        names = [listener.name for listener in self.listeners]
        by_name = bool(self.str("inter.broker.listener.name"))
        if by_name and self.is_set("security.inter.broker.protocol"):
            raise ConfigError(
                "inter.broker.listener.name",
                self.str("inter.broker.listener.name"),
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set",
                "expected inter.broker.listener.name alone: its protocol follows from it",
            )
        if self.inter_broker_listener not in names:
            setting = "inter.broker.listener.name" if by_name else "security.inter.broker.protocol"
            raise ConfigError(
                setting,
                self.str(setting),
                "must be a listener name defined in listeners",
                f"expected one of {', '.join(names)}",
            )
        broker_id, highest = self.int("broker.id"), self.int("reserved.broker.max.id")
        generates = self.quorum is None and self.bool("broker.id.generation.enable")
        if broker_id < -1 or (broker_id > highest and generates):
            raise ConfigError(
                "broker.id",
                str(broker_id),
                "must be greater than or equal to -1 and not greater than reserved.broker.max.id",
                f"expected a whole number from 0 to {highest}",
            )
        if self.duration_ms("log.roll.ms") < 1:
            raise ConfigError("log.roll.ms", self._text("log.roll.ms"), "must be greater than or equal to 1")
        if self.duration_ms("log.roll.jitter.ms") < 0:
            raise ConfigError(
                "log.roll.jitter.ms", self._text("log.roll.jitter.ms"), "must be greater than or equal to 0"
            )
        threads = max(self.int("log.cleaner.threads"), 1)
        if self.int("log.cleaner.dedupe.buffer.size") // threads <= _CLEANER_BYTES:
            raise ConfigError(
                "log.cleaner.dedupe.buffer.size",
                self._text("log.cleaner.dedupe.buffer.size"),
                "must be at least 1MB per cleaner thread.",
            )
        if self.duration_ms("log.retention.ms") == 0:
            raise ConfigError(
                "log.retention.ms",
                self._text("log.retention.ms"),
                "must be unlimited (-1) or, greater than or equal to 1",
            )
        if self.quorum is None:
            _ = self.inter_broker_protocol
        if any(name.startswith(_GROUP_PREFIXES) for name in self.static):
            # Imported here because few brokers change these settings.
            from kafka_compat.config.group import check_broker_settings

            check_broker_settings(self)

    def _text(self, name: str) -> str | None:
        return self._keys[name].show(self.get(name))


def _is_built(name: str) -> bool:
    """Return whether a name is derived from a listener, belongs to a plug-in, is newer than Kafka 3.9, or
    belongs to a setting that Kafka accepts only through AlterConfigs.
    """
    if name.startswith(PREFIX):
        return listener_key(name) is not None and with_right_case(name) == name
    prefixes = ("rsm.config.", "rlmm.config.", _OF_ITS_STORE, *_NEWER_PREFIXES)
    return name.startswith(prefixes) or name in AUTHORIZER_SETTINGS or name in dynamic_only_keys()
