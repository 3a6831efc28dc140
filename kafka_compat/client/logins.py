"""SASL authentication of a client, with the Java client's settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kafka_compat.security import jaas
from kafka_compat.security.jaas import LoginModule
from kafka_compat.security.scram_credential import MECHANISMS as SCRAM

if TYPE_CHECKING:
    from kafka_compat.security.sasl.client import ClientMechanism

NewLogin = Callable[[str], "ClientMechanism"]
"""Begins authentication with a host. Raises Untrusted if the client cannot obtain a token or ticket."""

BY_OTHERS: Final = ("OAUTHBEARER", "GSSAPI")
"""Mechanisms that require a token issuer or a KDC."""
MECHANISMS: Final = ("PLAIN", *SCRAM, *BY_OTHERS)
JAAS: Final = "sasl.jaas.config"
_LISTENER: Final = "CLIENT"
"""Listener name for parsing a client's settings, because brokers configure outgoing logins by listener."""


def login_of(mechanism: str, settings: Mapping[str, str]) -> NewLogin:
    """Return the login for `mechanism`, one of MECHANISMS. Raises ValueError if a setting is invalid."""
    if JAAS not in settings:
        raise ValueError(f"{JAAS} is missing: it contains the client's credentials")
    try:
        module = jaas.parse(settings[JAAS])
    except ValueError as error:
        raise ValueError(f"{JAAS}: {error}") from error
    if mechanism == "OAUTHBEARER":
        return _bearer(settings, module)
    if mechanism == "GSSAPI":
        return _kerberos(settings, module)
    return _by_password(mechanism, module)


def _by_password(mechanism: str, module: LoginModule) -> NewLogin:
    from kafka_compat.security.sasl.client import PlainClient, ScramClient

    name, password = module.options.get("username"), module.options.get("password")
    if not name or not password:
        raise ValueError(f'{JAAS} has no username="NAME" password="PASSWORD"')
    if mechanism == "PLAIN":
        return lambda host: PlainClient(name, password)
    return lambda host: ScramClient(mechanism, name, password)


def _bearer(settings: Mapping[str, str], module: LoginModule) -> NewLogin:
    from kafka_compat.clock import SystemClock
    from kafka_compat.config import BrokerConfig, ConfigError
    from kafka_compat.config.listener_config import PREFIX, ListenerConfig
    from kafka_compat.http_client import Unreachable
    from kafka_compat.security.oauth.login import TokenEndpoint, TokenSource
    from kafka_compat.security.oauth.settings import client_of
    from kafka_compat.security.sasl.client import Untrusted

    sources: list[TokenSource] = []
    now_ms = SystemClock().now_ms

    def source(endpoint: TokenEndpoint) -> TokenSource:
        sources.append(TokenSource(endpoint, now_ms))
        return sources[-1]

    prefix = f"{PREFIX}{_LISTENER.lower()}.oauthbearer."
    own = {prefix + name: value for name, value in settings.items() if name.startswith("sasl.")}
    try:
        config = ListenerConfig(BrokerConfig.from_properties(own), _LISTENER)
        new_client = client_of(config, module.options, source, now_ms)
    except ConfigError as error:
        raise ValueError(error.in_full.replace(prefix, "")) from error

    def begun(host: str) -> ClientMechanism:
        try:
            while sources:
                asyncio.run(sources[-1].open())
                sources.pop()
            return new_client()
        except (Unreachable, ConnectionError) as error:
            raise Untrusted(f"cannot get a token to log in: {error}") from error

    return begun


def _kerberos(settings: Mapping[str, str], module: LoginModule) -> NewLogin:
    from kafka_compat.config import BrokerConfig, ConfigError
    from kafka_compat.config.listener_config import ListenerConfig
    from kafka_compat.security.kerberos_settings import client_of

    own = {name: value for name, value in settings.items() if name.startswith("sasl.kerberos.")}
    try:
        return client_of(ListenerConfig(BrokerConfig.from_properties(own), _LISTENER), module)
    except ConfigError as error:
        raise ValueError(error.in_full) from error
