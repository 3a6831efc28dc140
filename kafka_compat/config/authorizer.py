"""The setting authorizer.class.name, and the settings that Kafka's authorizer plug-in defines.

No code is loaded by name. The names of Kafka's own authorizers select the built-in authorizer, which makes
the same decisions, and all other names are rejected. A broker that ignored the setting would allow every
request.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_compat.config.keys import ConfigError

CLASS: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_IF_NO_ACL: Final = "allow.everyone.if.no.acl.found"
_STORE: Final = "authorizer.zookeeper.url"

CLASSES: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
"""Kafka's authorizers: for ZooKeeper since Kafka 2.4, for ZooKeeper before 2.4, and for KRaft."""

OWN: Final = (SUPER_USERS, ALLOW_IF_NO_ACL, _STORE)
"""Settings that Kafka defines in the authorizer rather than in the broker."""


class AuthorizerSettings(NamedTuple):
    """The settings of the authorizer. `super_users` contains (kind, name) pairs."""

    super_users: tuple[tuple[str, str], ...]
    allow_if_no_acl: bool


def authorizer_settings(settings: Mapping[str, str]) -> AuthorizerSettings | None:
    """Return the authorizer's settings, or None if no authorizer is configured. Raises ConfigError if the
    authorizer is unknown or a setting is invalid.
    """
    name = settings.get(CLASS, "").strip()
    if not name:
        return None
    if name not in CLASSES:
        problem = "Unknown authorizer: this broker does not load classes"
        raise ConfigError(CLASS, name, problem, f"expected {CLASSES[0]}, which is built in, or no value")
    store = settings.get(_STORE, "").strip()
    if store and store != settings.get("zookeeper.connect", "").strip():
        problem = "ACLs are always stored with the other metadata (zookeeper.connect)"
        raise ConfigError(_STORE, store, problem, "expected the value of zookeeper.connect, or no value")
    return AuthorizerSettings(
        tuple(_super_users(settings.get(SUPER_USERS, ""))),
        _boolean(ALLOW_IF_NO_ACL, settings.get(ALLOW_IF_NO_ACL, "false")),
    )


def _super_users(text: str) -> list[tuple[str, str]]:
    found = []
    for item in filter(None, (item.strip() for item in text.split(";"))):
        kind, colon, name = item.partition(":")
        if not colon:
            problem = f"expected a string in format principalType:principalName but got {item}"
            raise ConfigError(SUPER_USERS, text, problem, "expected User:ann;User:bob")
        found.append((kind, name))
    return found


def _boolean(name: str, text: str) -> bool:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise ConfigError(name, text, "Expected value to be either true or false", "expected true or false")
    return value == "true"
