"""SASL mechanisms that a listener offers, each configured by its settings.

Settings of one mechanism are `listener.name.<listener>.<mechanism>.X` (as in Kafka, in lower case).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.config import ConfigError
from kafka_compat.config.listener_config import PREFIX, ListenerConfig
from kafka_compat.security import jaas
from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.exchange import GSSAPI, Offer
from kafka_compat.security.sasl.mechanism import Mechanism, Plain
from kafka_compat.security.sasl.scram import Found, Scram
from kafka_compat.security.scram_credential import Credential

if TYPE_CHECKING:
    from kafka_compat.security.oauth.key_set import KeySource
    from kafka_compat.security.oauth.secured import Keys

log = logging.getLogger(__name__)

_USER: Final = "user_"
_JAAS_FILE: Final = "kafka.compat.sasl.jaas.file"
_SECTION: Final = "KafkaServer"
_MODULES: Final = {
    GSSAPI: "Krb5LoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Sources(NamedTuple):
    """Sources of identities other than the settings. `credential` returns a user's credential for a
    mechanism, `token` a delegation token with an ID, and `keys` an issuer's keys. `now_ms` returns the Unix
    time.
    """

    credential: Callable[[str, str], Credential | None]
    token: Callable[[str, str], Found | None]
    keys: Callable[[KeySource], Keys]
    now_ms: Callable[[], int]


def offer_of(settings: ListenerConfig, sources: Sources) -> Offer:
    """Return the SASL mechanisms of one listener. Raises ConfigError if a setting is invalid."""
    mechanisms: dict[str, Callable[[], Mechanism]] = {}
    session_max_ms: dict[str, int] = {}
    enabled = settings.list("sasl.enabled.mechanisms")
    for mechanism in enabled:
        make = _MAKERS.get(mechanism)
        if make is None:
            name = settings.named("sasl.enabled.mechanisms")
            raise ConfigError(
                name,
                ",".join(enabled),
                f"listener {settings.listener_name} cannot offer {mechanism}",
                f"expected some of {', '.join(_MAKERS)}, for example {name}=SCRAM-SHA-512",
            )
        mechanisms[mechanism] = make(settings, mechanism, sources)
        own = f"{mechanism.lower()}.connections.max.reauth.ms"
        session_max_ms[mechanism] = settings.int(own if settings.is_own(own) else "connections.max.reauth.ms")
    if not mechanisms:
        raise ConfigError(
            settings.named("sasl.enabled.mechanisms"),
            "",
            "No SASL mechanisms are enabled",
            f"expected some of {', '.join(_MAKERS)}",
        )
    return Offer(mechanisms, session_max_ms, settings.int("connection.failed.authentication.delay.ms"))


def login_module(settings: ListenerConfig, mechanism: str) -> jaas.LoginModule | None:
    """Return a mechanism's login module from sasl.jaas.config or the JAAS file, or None if it is missing."""
    own = f"{mechanism.lower()}.sasl.jaas.config"
    if not settings.is_own(own):
        return _in_file(settings, mechanism)
    try:
        return jaas.parse(settings.str(own) or "")
    except ValueError as error:
        raise ConfigError(settings.named(own), "[hidden]", str(error), _expected_of(mechanism)) from None


def _in_file(settings: ListenerConfig, mechanism: str) -> jaas.LoginModule | None:
    path = settings.str(_JAAS_FILE)
    if not path:
        return None
    sections = (f"{settings.listener_name.lower()}.{_SECTION}", _SECTION)
    try:
        with open(path, encoding="utf-8") as file:
            modules = jaas.parse_section(file.read(), *sections)
    except ValueError as error:
        raise ConfigError(_JAAS_FILE, path, str(error), _expected_of(mechanism)) from None
    except OSError as error:
        raise ConfigError(_JAAS_FILE, path, f"the file cannot be read: {error.strerror or error}") from error
    name = _MODULES[mechanism]
    return next((module for module in modules if module.name.endswith(f".{name}")), None)


def _expected_of(mechanism: str) -> str:
    if mechanism == "PLAIN":
        return f'expected {_PLAIN_MODULE} required user_NAME="PASSWORD" user_OTHER="PASSWORD";'
    return 'expected MODULE required key="value";'


def _plain(settings: ListenerConfig, mechanism: str, sources: Sources) -> Callable[[], Mechanism]:
    module = login_module(settings, mechanism)
    if module is None:
        raise ConfigError(
            f"{PREFIX}{settings.listener_name.lower()}.plain.sasl.jaas.config",
            None,
            f"listener {settings.listener_name} offers PLAIN but has no users",
            _expected_of(mechanism),
        )
    passwords = {
        name.removeprefix(_USER): value for name, value in module.options.items() if name.startswith(_USER)
    }
    return lambda: Plain(passwords)


def _scram(settings: ListenerConfig, mechanism: str, sources: Sources) -> Callable[[], Mechanism]:
    def find(name: str, by_token: bool) -> Found | None:
        if by_token:
            return sources.token(name, mechanism)
        credential = sources.credential(name, mechanism)
        return None if credential is None else Found(credential, Principal("User", name))

    return lambda: Scram(mechanism, find)


def _oauthbearer(settings: ListenerConfig, mechanism: str, sources: Sources) -> Callable[[], Mechanism]:
    from kafka_compat.security.oauth.settings import validator_of
    from kafka_compat.security.sasl.oauthbearer import OAuthBearer

    module = login_module(settings, mechanism)
    validator = validator_of(settings, module.options if module else {}, sources.keys)
    return lambda: OAuthBearer(validator, sources.now_ms)


def _gssapi(settings: ListenerConfig, mechanism: str, sources: Sources) -> Callable[[], Mechanism]:
    from kafka_compat.security.kerberos_settings import server_of
    from kafka_compat.security.sasl.gssapi import Gssapi

    acceptor, namer = server_of(settings, login_module(settings, mechanism))
    return lambda: Gssapi(acceptor.credentials, namer)


_MAKERS: Final = {
    GSSAPI: _gssapi,
    "OAUTHBEARER": _oauthbearer,
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
}
