"""Check a broker's settings (server.properties). The only files that are read are those that they name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from kafka_compat.config import BrokerConfig
from kafka_compat.config.inter_broker_protocol import SETTING, parse_version
from kafka_compat.config.keys import ConfigError, broker_keys
from kafka_compat.config.own_settings import OWN_DEFAULTS
from kafka_compat.migration.findings import MIRROR, Finding, Level

AREA: Final = "settings"
SECURITY: Final = "security"
_KAFKAS_LOG_DIR: Final = "/tmp/kafka-logs"
_NEW_FORMAT: Final = (3, 0, 1)
"""The first protocol at which Kafka ignores message.format.version."""

_TO_CHANGE: Final[Mapping[str, str]] = {
    "principal.builder.class": "expected the default, because Java classes are not loaded: other principals "
    "would be authorized",
    "client.quota.callback.class": "expected no value, because Java classes are not loaded: set the quotas "
    "with kafka-configs",
    "create.topic.policy.class.name": "expected no value, because Java classes are not loaded: restrict "
    "CREATE with ACLs",
    "alter.config.policy.class.name": "expected no value, because Java classes are not loaded: restrict "
    "ALTER_CONFIGS with ACLs",
    "ssl.engine.factory.class": "expected no value, because Java classes are not loaded: name the "
    "certificates in ssl.keystore.location",
    "control.plane.listener.name": "expected no value: the controller uses the inter-broker listener. Remove "
    "it from all brokers first",
}
"""Settings without effect here that change what clients may do, or whether brokers reach each other."""


class CheckedSettings(NamedTuple):
    """The settings of one broker, and the findings. `config` is None if they cannot be read at all."""

    broker: int | None
    config: BrokerConfig | None
    static: Mapping[str, str]
    findings: list[Finding]


def check_settings(static: Mapping[str, str], broker_id: int | None = None) -> CheckedSettings:
    """Check the settings of a genuine broker. `broker_id` replaces a broker.id that ZooKeeper generated."""
    found: list[Finding] = []
    numbers = [static.get(name, "") for name in ("broker.id", "node.id")]
    broker = next((int(text) for text in numbers if text.isdecimal()), broker_id)

    def add(level: Level, text: str, remedy: str = "", area: str = AREA) -> None:
        found.append(Finding(broker, level, area, text, remedy))

    if static.get("process.roles"):
        text = f"process.roles={static['process.roles']}: a node in KRaft mode, whose directories differ"
        add(Level.CHANGE, text, MIRROR)
        return CheckedSettings(broker, None, static, found)
    if not static.get("zookeeper.connect"):
        remedy = "expected the addresses of the cluster's ZooKeeper, as in Kafka's server.properties"
        add(Level.CHANGE, "zookeeper.connect is not set: this would be a standalone broker", remedy)
    if static.get("zookeeper.metadata.migration.enable", "false").lower() == "true":
        remedy = (
            "finish Kafka's migration to KRaft and mirror the cluster, or go back, and remove the setting"
        )
        add(Level.CHANGE, "zookeeper.metadata.migration.enable=true: a move to KRaft is prepared", remedy)
        static = {
            name: value for name, value in static.items() if name != "zookeeper.metadata.migration.enable"
        }
    if static.get("config.providers"):
        text = f"config.providers={static['config.providers']}: values such as ${{file:…}} are not replaced"
        add(Level.CHANGE, text, "expected no providers: write the values into server.properties")
        static = {name: value for name, value in static.items() if not name.startswith("config.providers")}
    config, errors = _parsed(static)
    for error in errors:
        add(Level.CHANGE, _of(error), error.expected or "expected a value that kafka-compat accepts")
    if config is None:
        return CheckedSettings(broker, None, static, found)
    found += _without_effect(config, broker)
    for name in config.unknown:
        add(
            Level.DIFFERS,
            f"{config.unknown_with_guess(name)}={static[name]}: unknown, and ignored",
            "none needed",
        )
    found += _defaults(static, broker)
    found += _formats(config, broker)
    found += [Finding(broker, Level.CHANGE, SECURITY, text, remedy) for text, remedy in _security(config)]
    if broker is None:
        text = "broker.id is not set: its ID is in meta.properties, or ZooKeeper generates a new one"
        add(Level.INFO, text)
    listeners = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in config.listeners)
    add(Level.INFO, f"listeners {listeners}; {SETTING} {config.inter_broker_protocol.name}")
    return CheckedSettings(broker, config, static, found)


def _parsed(static: Mapping[str, str]) -> tuple[BrokerConfig | None, list[ConfigError]]:
    """Parse the settings, and collect all errors. Each wrong setting is removed, and the rest is parsed."""
    rest = dict(static)
    errors: list[ConfigError] = []
    while True:
        try:
            return BrokerConfig(rest), errors
        except ConfigError as error:
            errors.append(error)
            if rest.pop(error.name, None) is None:
                return None, errors


def _of(error: ConfigError) -> str:
    # The name comes first, so that the lines of a report are easy to scan.
    return f"{error.name}={error.value}: {error.reason}"


def _without_effect(config: BrokerConfig, broker: int | None) -> Iterator[Finding]:
    keys = broker_keys()
    for name, value in config.static.items():
        key = keys.get(name)
        if key is None or key.has_effect or value.strip() == (key.default or ""):
            continue
        text = f"{name}={'[hidden]' if key.sensitive else value}: has no effect here"
        if name == "remote.log.storage.system.enable":
            remedy = (
                "expected false: tiered storage is not supported. Delete tiered topics, or mirror them first"
            )
            yield Finding(broker, Level.CHANGE, AREA, f"{name}={value}: tiered storage is enabled", remedy)
        elif name in _TO_CHANGE:
            yield Finding(broker, Level.CHANGE, AREA, text, _TO_CHANGE[name])
        else:
            yield Finding(broker, Level.DIFFERS, AREA, text, "none needed: see docs/settings.md")


def _defaults(static: Mapping[str, str], broker: int | None) -> Iterator[Finding]:
    if "log.dirs" not in static and "log.dir" not in static:
        own = OWN_DEFAULTS["log.dir"]
        text = f"log.dirs is not set: Kafka uses {_KAFKAS_LOG_DIR}, and kafka-compat {own}"
        remedy = f"set log.dirs={_KAFKAS_LOG_DIR} in server.properties"
        yield Finding(broker, Level.CHANGE, AREA, text, remedy)
    if "listeners" not in static:
        own = OWN_DEFAULTS["listeners"]
        text = f"listeners is not set: Kafka listens on all addresses, and kafka-compat on {own}"
        remedy = "set listeners=PLAINTEXT://:9092 in server.properties"
        yield Finding(broker, Level.CHANGE, AREA, text, remedy)


def _formats(config: BrokerConfig, broker: int | None) -> Iterator[Finding]:
    name = "log.message.format.version"
    value = config.static.get(name)
    protocol = parse_version(config.static.get(SETTING, "3.9"))
    if value is None or protocol is None or protocol >= _NEW_FORMAT:
        return
    if is_old_format(value):
        yield old_format(broker, AREA, f"{name}={value}")


def old_format(broker: int | None, area: str, setting: str) -> Finding:
    """Return the finding about a setting with an old message format, given as NAME=VALUE."""
    text = f"{setting}: leaders of kafka-compat store new records in format 2 (Kafka 0.11)"
    return Finding(broker, Level.DIFFERS, area, text, "none needed: older clients get the records converted")


def is_old_format(version: str) -> bool:
    """Return whether a message.format.version is older than format 2, which Kafka 0.11 introduced."""
    parts = version.partition("-")[0].split(".")
    return parts[0] == "0" and (len(parts) < 2 or not parts[1].isdecimal() or int(parts[1]) < 11)


def _security(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """Yield (problem, remedy) for the security of listeners, of other brokers, and of ZooKeeper."""
    from kafka_compat.broker.entrances import Entrances
    from kafka_compat.clock import SystemClock
    from kafka_compat.cluster.zookeeper_sessions import store_security
    from kafka_compat.errors import StartupError

    for name, value in config.static.items():
        is_file = name.endswith((".keystore.location", ".truststore.location", "jaas.file"))
        if is_file and value.strip() and not os.path.exists(value.strip()):
            yield f"{name}={value}: the file is not on this machine", "run the check on the broker's machine"
    try:
        store_security(config)
    except ConfigError as error:
        yield _of(error), error.expected
    try:
        # Only the listeners' entrances are filled in. Nothing is opened.
        server: Any = SimpleNamespace(entrances={})
        Entrances(config, SystemClock(), server).broker_security()
    except ConfigError as error:
        yield _of(error), error.expected
    except StartupError as error:
        yield str(error), "expected values that kafka-compat accepts: see docs/security.md"
